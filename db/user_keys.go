package db

import (
	"context"
	"regexp"
	"strings"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// The keys by which users are sorted by last name, and selected by department and manager (decisions 2.8). The migration
// that adds users.sort_keys describes where they are stored.

// SortKeys is the column sort_keys: by column, the keys of a user's texts that are not plain. It is nil if all are.
type SortKeys map[string]map[string]string

// notPlain is a regular expression, for Go and for PostgreSQL, that matches a text whose key is stored. The key of
// another text is the text in lower case.
const notPlain = `[^ -~]|^ | $|  |xn--`

var notPlainText = regexp.MustCompile(notPlain)

// The keys of the last name, the department and the manager of a user, alias u, as SQL expressions.
var (
	lastNameKey   = keyExpression("last_name")
	departmentKey = keyExpression("department")
	managerKey    = keyExpression("manager_email")
)

// keyExpression returns the key of a column of the user, alias u, as its indexes have it.
func keyExpression(column string) string {
	return strings.ReplaceAll(`coalesce(u.sort_keys->'column'->>u.column, lower(u.column COLLATE "C"))`, "column", column)
}

// departmentPlace is the place of the department of a user, alias u, in the list of departments: placeOf its key or, for
// a user without a department, noDepartment, which comes after all others.
var departmentPlace = "coalesce('=' || nullif(" + departmentKey + ", ''), '" + noDepartment + "')"

const noDepartment = ">"

// placeOf returns the place of a department.
func placeOf(department string) string { return "=" + domain.SortKey(department) }

// unkeyed is the condition that a text of a user, alias u, is not plain and has no key.
var unkeyed = "(" + strings.Join([]string{unkeyedColumn("last_name"), unkeyedColumn("department"), unkeyedColumn("manager_email")}, " OR ") + ")"

func unkeyedColumn(column string) string {
	return strings.ReplaceAll(`u.column COLLATE "C" ~ '`+notPlain+`' AND u.sort_keys->'column'->>u.column IS NULL`, "column", column)
}

// sortKeysOf returns the keys to store with a user.
func sortKeysOf(u *domain.User) SortKeys {
	var keys SortKeys
	add := func(column, text string, keyOf func(string) string) {
		if notPlainText.MatchString(text) {
			if keys == nil {
				keys = SortKeys{}
			}
			keys[column] = map[string]string{text: keyOf(text)}
		}
	}
	add("last_name", u.LastName, domain.SortKey)
	add("department", domain.OrZero(u.Department), domain.SortKey)
	add("manager_email", domain.OrZero(u.ManagerEmail), domain.EmailKey)
	return keys
}

// lastNameKey returns the value of the expression lastNameKey.
func (r *UserRow) lastNameKey() string {
	if key, ok := r.SortKeys["last_name"][r.LastName]; ok {
		return key
	}
	return strings.Map(func(c rune) rune { // as lower in the collation "C"
		if c >= 'A' && c <= 'Z' {
			return c + 'a' - 'A'
		}
		return c
	}, r.LastName)
}

// SetSortKeys sets the keys that follow from the user's texts.
func (r *UserRow) SetSortKeys() { r.SortKeys = sortKeysOf(&r.User) }

// SettleSortKeys stores the keys of texts that an earlier release wrote, for at most settleBatch users, and returns their
// number.
func (d *DB) SettleSortKeys(ctx context.Context) (settled int, err error) {
	ids, err := pg.All[domain.UserID](ctx, d, "look for users without keys", pg.SQL(
		"SELECT u.id FROM users AS u WHERE "+unkeyed+" AND "+encodesKeys+" ORDER BY u.id LIMIT ?", settleBatch))
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	return len(ids), d.RetryChange(ctx, func(ctx context.Context, c *Change) error {
		rows, err := c.LockUserRows(ctx, pg.SQL("u.id = ANY(?::uuid[])", pg.IDs(ids)))
		if err != nil {
			return err
		}
		for i := range rows {
			rows[i].SetSortKeys()
		}
		return pg.UpdateRows(ctx, c, "store the keys of users", rows, "sort_keys")
	})
}
