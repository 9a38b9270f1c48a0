package conf

import (
	"errors"
	"strings"
)

// Names become metric labels, parts of commands (POOL/SERVER) and of URLs, so few characters are allowed in them.
const longestName = 64

const wantName = "a name of letters, digits, '.', '_' and '-' (64 at most)"

func checkName(s string) error {
	if s == "" || len(s) > longestName || strings.ContainsFunc(s, func(r rune) bool { return !isNameRune(r) }) {
		return errors.New("got " + quote(s) + ", want " + wantName)
	}
	return nil
}

func isNameRune(r rune) bool {
	return r < 0x80 && (isBare(byte(r)) || r == '.')
}

func name(raw any) (string, error) {
	s, ok := raw.(string)
	if !ok {
		return "", wrong(raw, wantName)
	}
	return s, checkName(s)
}
