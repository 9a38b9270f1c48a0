// Package pick decides which server is next.
package pick
