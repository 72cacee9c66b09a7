package v1compat

import "strings"

// Anchor is where the migration guide describes an operation of v1: the id that the
// pages' Markdown gives the heading "METHOD PATH", such as "GET
// /v1/clients/{client_id}/users". Letters are in lower case, a space, a hyphen and an
// underscore are a hyphen, and other signs go, so parameters may be written
// :client_id too.
func Anchor(method, path string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			return r
		case 'A' <= r && r <= 'Z':
			return r - 'A' + 'a'
		case r == ' ', r == '-', r == '_':
			return '-'
		}
		return -1
	}, method+" "+path)
}
