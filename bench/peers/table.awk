# Makes a table of `go test -bench` output: the fastest run of each contender, since
# whatever else the machine does can only slow one down.
/^BenchmarkPeers/ {
	sub(/-[0-9]+$/, "", $1)
	split($1, p, "/")
	id = p[2] " | " p[3]
	if (!(id in seen)) { seen[id] = 1; order[++n] = id }
	at = id SUBSEP p[4]
	if (!(at in best) || $3 < best[at]) best[at] = $3
	for (i = 4; i < NF; i++) if ($(i + 1) == "allocs/op") allocs[id] = $i
}
END {
	print "| kind | picker | one goroutine, ns | all cores at once, ns | allocations |"
	print "|---|---|---|---|---|"
	for (i = 1; i <= n; i++) {
		id = order[i]
		all = (id SUBSEP "all" in best) ? sprintf("%.1f", best[id, "all"]) : "not safe"
		printf "| %s | %.1f | %s | %s |\n", id, best[id, "one"], all, allocs[id]
	}
}
