package conf

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A parser makes a checked value of what the TOML library found, or says what it wanted instead. Parsers know
// nothing of files and lines; table.go adds those.
type parser[T any] func(raw any) (T, error)

// The longest duration that any timeout may have. Beyond it the sum of a clock and a timeout might wrap.
const longest = 10 * 365 * 24 * time.Hour

// The largest count. Limits become 32-bit numbers in the kernel.
const most = math.MaxInt32

const wantDuration = `a duration with a unit such as "5s" or "1h30m"`

// wrong is the sentence for a value that was not accepted.
func wrong(raw any, want string) error {
	return fmt.Errorf("got %s, want %s", show(raw), want)
}

// show spells a value as the file does, cut to what fits a line.
func show(raw any) string {
	switch v := raw.(type) {
	case string:
		return quote(v)
	case []any, []map[string]any:
		return "a list"
	case map[string]any:
		return "a table"
	case time.Time:
		return "a date"
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1e15 {
			return strconv.FormatFloat(v, 'f', 1, 64) // else 1.0 would look like the whole number it is not
		}
	}
	return fmt.Sprint(raw)
}

func quote(s string) string { return strconv.Quote(clip(s, longEnough)) }

// longEnough is how much of a key or a value a message repeats.
const longEnough = 60

// clip cuts s to so many letters.
func clip(s string, letters int) string {
	if utf8.RuneCountInString(s) <= letters {
		return s
	}
	return string([]rune(s)[:letters]) + "..."
}

func text(raw any) (string, error) {
	s, ok := raw.(string)
	if !ok {
		return "", wrong(raw, "text")
	}
	if strings.ContainsFunc(s, isControl) {
		return "", wrong(raw, "text without control characters")
	}
	return s, nil
}

func isControl(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }

// raw text may hold any character: a probe may have to send them.
func anyText(raw any) (string, error) {
	s, ok := raw.(string)
	if !ok {
		return "", wrong(raw, "text")
	}
	return s, nil
}

func flag(raw any) (bool, error) {
	b, ok := raw.(bool)
	if !ok {
		return false, wrong(raw, "true or false")
	}
	return b, nil
}

// oneOf accepts one of words.
func oneOf(words ...string) parser[string] {
	return func(raw any) (string, error) {
		if s, ok := raw.(string); ok && slices.Contains(words, s) {
			return s, nil
		}
		return "", wrongWord(raw, words)
	}
}

// wrongWord is wrong for a choice, with the word that was probably meant.
func wrongWord(raw any, words []string) error {
	s, _ := raw.(string)
	return wrong(raw, "one of "+strings.Join(words, ", ")+didYouMean(s, words))
}

// count accepts whole numbers from low to high.
func count(low, high int) parser[int] {
	want := fmt.Sprintf("a whole number from %d to %d", low, high)
	if high == most {
		want = fmt.Sprintf("a whole number of at least %d", low)
	}
	return func(raw any) (int, error) {
		n, ok := raw.(int64)
		if !ok || n < int64(low) {
			return 0, wrong(raw, want)
		}
		if n > int64(high) {
			return 0, wrong(raw, fmt.Sprintf("a whole number from %d to %d", low, high))
		}
		return int(n), nil
	}
}

// limit accepts a number of things, 0 for no limit.
func limit(raw any) (int, error) { return count(0, most)(raw) }

// share accepts a number from 0 to 1.
func share(raw any) (float64, error) {
	f, ok := number(raw)
	if !ok || !(f >= 0 && f <= 1) { // the negation catches NaN
		return 0, wrong(raw, "a share from 0 to 1")
	}
	return f, nil
}

func number(raw any) (float64, bool) {
	switch v := raw.(type) {
	case float64:
		return v, true
	case int64:
		return float64(v), true
	}
	return 0, false
}

// timeout accepts a duration, "0s" for none. What is neither is at least a millisecond: less is a slip of the
// pen, and no clock here is that fine.
func timeout(raw any) (time.Duration, error) {
	d, err := duration(raw)
	if err == nil && d != 0 && (d < time.Millisecond || d > longest) {
		err = wrong(raw, `"0s" (none) or from 1ms to 87600h`)
	}
	return d, err
}

// period accepts a duration that cannot be none.
func period(raw any) (time.Duration, error) {
	d, err := duration(raw)
	if err == nil && (d < time.Millisecond || d > longest) {
		err = wrong(raw, "a duration from 1ms to 87600h")
	}
	return d, err
}

// seconds accepts whole seconds up to high, since the kernel's option counts in those; "0s" is none.
func seconds(high time.Duration) parser[time.Duration] {
	return func(raw any) (time.Duration, error) {
		d, err := duration(raw)
		if err == nil && (d%time.Second != 0 || d > high) {
			err = wrong(raw, fmt.Sprintf("whole seconds from 0s to %ds", high/time.Second))
		}
		return d, err
	}
}

// someSeconds is seconds without none.
func someSeconds(high time.Duration) parser[time.Duration] {
	return func(raw any) (time.Duration, error) {
		d, err := seconds(high)(raw)
		if err == nil && d == 0 {
			err = wrong(raw, fmt.Sprintf("whole seconds from 1s to %ds", high/time.Second))
		}
		return d, err
	}
}

func duration(raw any) (time.Duration, error) {
	s, ok := raw.(string)
	d, err := time.ParseDuration(s)
	if !ok || err != nil || !strings.HasSuffix(s, "s") && !strings.HasSuffix(s, "m") && !strings.HasSuffix(s, "h") {
		return 0, wrong(raw, wantDuration)
	}
	if d < 0 {
		return 0, wrong(raw, wantDuration+", not below zero")
	}
	return d, nil
}

// size accepts a number of bytes, bare or with KiB, MiB or GiB.
func size(raw any) (int64, error) {
	const want = `a number of bytes or a size such as "64KiB", "10MiB" or "1GiB"`
	if n, ok := raw.(int64); ok && n >= 0 {
		return n, nil
	}
	s, _ := raw.(string)
	for i, unit := range []string{"KiB", "MiB", "GiB"} {
		digits, ok := strings.CutSuffix(s, unit)
		n, err := strconv.ParseUint(digits, 10, 32)
		if ok && err == nil {
			return int64(n) << (10 * (i + 1)), nil
		}
	}
	return 0, wrong(raw, want)
}

// list accepts a list of what item accepts.
func list[T any](item parser[T]) parser[[]T] {
	return func(raw any) ([]T, error) {
		items, ok := raw.([]any)
		if !ok {
			return nil, wrong(raw, "a list")
		}
		out := make([]T, len(items))
		var bad itemErrors
		for i, one := range items {
			var err error
			if out[i], err = item(one); err != nil {
				bad = append(bad, itemError{i, err})
			}
		}
		if bad != nil {
			return nil, bad
		}
		return out, nil
	}
}

// itemErrors are the elements of a list that were refused, each of which gets a message of its own.
type itemErrors []itemError

type itemError struct {
	index int
	error
}

func (e itemErrors) Error() string { return e[0].Error() }

// oneOrMore accepts a list that is not empty, or one value in place of a list of one.
func oneOrMore[T any](item parser[T], want string) parser[[]T] {
	return func(raw any) ([]T, error) {
		if items, ok := raw.([]any); ok && len(items) == 0 {
			return nil, errors.New("got an empty list, want " + want)
		} else if ok {
			return list(item)(raw)
		}
		v, err := item(raw)
		return []T{v}, err
	}
}
