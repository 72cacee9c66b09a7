package domain

import "strings"

// SortKey is what names and emails are compared and sorted by: lower case by
// Unicode rules, then byte order (decisions 2.8). It is made here and not in
// the database, whose lower() depends on its locale.
func SortKey(text string) string { return strings.ToLower(text) }
