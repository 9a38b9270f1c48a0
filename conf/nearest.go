package conf

import "strings"

// nearest is the word that was probably meant by s, or "" when none is near: the same but for case and dashes,
// one within a third of its letters, or one that begins or ends with s.
func nearest(s string, words []string) string {
	plain := strings.NewReplacer("-", "_", "_", "_").Replace(strings.ToLower(s))
	best, least := "", min(max(2, len(s)/3), len(s)/2)+1
	for _, w := range words {
		if d := distance(plain, w); d < least {
			best, least = w, d
		}
	}
	if best != "" || len(s) < 3 {
		return best
	}
	for _, w := range words {
		if strings.HasPrefix(w, plain) || strings.HasSuffix(w, plain) {
			return w
		}
	}
	return ""
}

// didYouMean is the end of a message about s.
func didYouMean(s string, words []string) string {
	if near := nearest(s, words); near != "" {
		return " (did you mean " + near + "?)"
	}
	return ""
}

// distance is how many letters to add, drop or change to make b of a (Levenshtein, 1965). Long words are all far.
func distance(a, b string) int {
	const far = 1 << 10
	if len(a) > 64 || len(b) > 64 {
		return far
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
