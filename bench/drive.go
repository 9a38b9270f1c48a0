package main
func drive([]string) error { return nil }
