package dirsync

import (
	"context"

	"partnerapi/domain"
)

// renameRequest is a request to give a user an address.
type renameRequest struct {
	user   domain.UserID
	key    string        // of the address
	holder domain.UserID // the user who has the key; zero if it is free
	// blocked is true if several users have the key: it does not get free by one rename.
	blocked bool
}

// rename updates users whose new address another user has or had. Renames that depend on each other, a group of
// resolveRenames, are in one batch; groups that do not fit stay staged for the next one. If the holder keeps the
// address, the account is skipped, and its user keeps the current address.
func (s *batch) rename(ctx context.Context) error {
	holders, err := s.holders(ctx)
	if err != nil {
		return err
	}
	list := make([]renameRequest, len(s.rows))
	for i := range s.rows {
		email, _ := s.rows[i].Address() // valid: update has checked it
		list[i] = renameRequest{user: *s.rows[i].UserID, key: domain.EmailKey(email)}
		if others := holders.others(email, *s.rows[i].UserID); len(others) > 0 {
			list[i].holder, list[i].blocked = others[0], len(others) > 1
		}
	}
	possible, groups := resolveRenames(list)

	var rows []stagedAccount
	var canRename []bool
	for _, group := range groups {
		if len(rows) > 0 && len(rows)+len(group) > s.most {
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
		s.updateUser(r, *r.UserID, email)
		s.link(r, r.UserID, !canRename[i] /* unsettled */)
	}
	return nil
}

// resolveRenames returns which renames are possible, by index in list, and groups the indexes of renames that have to
// be made in one transaction. A rename depends on the rename of the holder of its address, and is impossible if the
// holder keeps the address. Of several users who want the same address, only the first may get it. So the possible
// renames form chains and cycles, and each of these is a group. An impossible rename is its own group.
func resolveRenames(list []renameRequest) (possible []bool, groups [][]int) {
	requestOf := map[domain.UserID]int{} // the index of each user's request
	waiting := map[domain.UserID]int{}   // by holder, the index of the request for its address; not read for the zero id
	for i, r := range list {
		requestOf[r.user] = i
	}
	possible = make([]bool, len(list))
	wanted := map[string]bool{}
	for i, r := range list {
		_, holderRenames := requestOf[r.holder]
		if possible[i] = !wanted[r.key] && !r.blocked && (r.holder.IsZero() || holderRenames); possible[i] {
			waiting[r.holder] = i
		}
		wanted[r.key] = true
	}
	for i := range list {
		for at, next := i, !possible[i]; next; { // a rename that waits for an impossible one is impossible
			possible[at] = false
			at, next = waiting[list[at].user]
			next = next && possible[at]
		}
	}

	groupOf := make([]int, len(list)) // the group's index in groups plus 1; 0 for none yet
	for i := range list {
		var path []int // from i along the holders
		at := i
		for groupOf[at] == 0 {
			path, groupOf[at] = append(path, at), len(groups)+1
			if holder, renames := requestOf[list[at].holder]; renames && possible[at] {
				at = holder
			}
		}
		group := groupOf[at] // a new group, or the earlier group that the path leads into
		for _, n := range path {
			groupOf[n] = group
		}
		if group > len(groups) {
			groups = append(groups, nil)
		}
		groups[group-1] = append(groups[group-1], path...)
	}
	return possible, groups
}
