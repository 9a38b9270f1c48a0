# Makes a table of `go test -bench` output. One goroutine: the fastest run, since
# whatever else the machine does can only slow one down. All cores: the median, since
# the fastest is one in which another core happened to be away.
/^BenchmarkPeers/ && NF > 3 {
	sub(/-[0-9]+$/, "", $1)
	split($1, p, "/")
	id = p[2] " | " p[3]
	if (!(id in seen)) { seen[id] = 1; order[++n] = id }
	at = id SUBSEP p[4]
	runs[at, ++count[at]] = $3 + 0
	for (i = 4; i < NF; i++) if ($(i + 1) == "allocs/op") allocs[id] = $i
}
function sorted(at, k,   i, j, x) {
	for (i = 2; i <= count[at]; i++) {
		x = runs[at, i]
		for (j = i - 1; j >= 1 && runs[at, j] > x; j--) runs[at, j + 1] = runs[at, j]
		runs[at, j + 1] = x
	}
	return runs[at, k]
}
END {
	print "| kind | picker | one goroutine, ns | all cores at once, ns | allocations |"
	print "|---|---|---|---|---|"
	for (i = 1; i <= n; i++) {
		id = order[i]
		all = id SUBSEP "all"
		wide = (all in count) ? sprintf("%.1f", sorted(all, int((count[all] + 1) / 2))) : "not safe"
		printf "| %s | %.1f | %s | %s |\n", id, sorted(id SUBSEP "one", 1), wide, allocs[id]
	}
}
