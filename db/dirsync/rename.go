package dirsync

import (
	"context"

	"partnerapi/domain"
)

// renameRequest is a request to give a user an address.
type renameRequest struct {
	user   domain.UserID
	email  string
	holder domain.UserID // the user who has the address; zero if it is free
}

// rename updates users whose new address another user has or had. Renames that depend on each other, a group of
// resolveRenames, are in one batch; groups that do not fit stay staged for the next one. If the holder keeps the address,
// the account is skipped, and its user keeps the current address.
func (s *batch) rename(ctx context.Context) error {
	holders, err := s.holders(ctx)
	if err != nil {
		return err
	}
	list := make([]renameRequest, len(s.rows))
	for i := range s.rows {
		email, _ := s.rows[i].Address() // valid: update has checked it
		list[i] = renameRequest{user: *s.rows[i].UserID, email: email, holder: holders[email]}
	}
	possible, groups := resolveRenames(list)

	var rows []stagedAccount
	var canRename []bool
	for _, group := range groups {
		if len(rows) > 0 && len(rows)+len(group) > batchSize {
			break
		}
		for _, i := range group {
			rows, canRename = append(rows, s.rows[i]), append(canRename, possible[i])
		}
	}
	s.rows = rows
	if err := s.lockLinked(ctx); err != nil {
		return err
	}
	for i := range s.rows {
		r := &s.rows[i]
		email, _ := r.Address()
		if !canRename[i] {
			s.skip(r, domain.SkippedTaken)
			email = s.users[*r.UserID].Email
		}
		s.follow(r, *r.UserID, email)
		s.link(r, r.UserID, !canRename[i])
	}
	return nil
}

// resolveRenames returns which renames are possible, by index in list, and groups the indexes of renames that have to
// be made in one transaction: those that form a chain or a cycle. A rename depends on the rename of the holder of its
// address, and is impossible if the holder keeps the address. Of several users who want the same address, only the
// first may get it.
func resolveRenames(list []renameRequest) (possible []bool, groups [][]int) {
	requestOf, wanted := map[domain.UserID]int{}, map[string]bool{}
	possible = make([]bool, len(list))
	for i, r := range list {
		possible[i] = !wanted[r.email]
		requestOf[r.user], wanted[r.email] = i, true
	}

	const unseen, following, settled = 0, 1, 2
	state := make([]int, len(list))
	groupOf := make([]int, len(list)) // the index in groups
	for i := range list {
		// Follow the holders from i until the outcome of the path is known.
		var path []int
		ok, group := true, -1
		for at := i; ; {
			if state[at] == settled {
				ok, group = possible[at], groupOf[at]
				break
			}
			if state[at] == following { // the whole path is a cycle: two users do not wait for the same holder
				break
			}
			state[at], path = following, append(path, at)
			if !possible[at] || list[at].holder.IsZero() {
				ok = possible[at]
				break
			}
			next, canRename := requestOf[list[at].holder]
			if !canRename { // the holder keeps the address
				ok = false
				break
			}
			at = next
		}

		if group < 0 || !ok { // an impossible rename need not be made with others
			group = len(groups)
			groups = append(groups, nil)
		}
		for _, at := range path {
			state[at], possible[at], groupOf[at] = settled, possible[at] && ok, group
		}
		groups[group] = append(groups[group], path...)
		if len(groups[group]) == 0 { // i was settled already, as impossible
			groups = groups[:group]
		}
	}
	return possible, groups
}
