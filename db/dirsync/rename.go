package dirsync

import (
	"context"

	"partnerapi/domain"
)

// renameRequest is a user who is to have an address that another user has.
type renameRequest struct {
	user   domain.UserID
	email  string
	holder domain.UserID // zero if no user has it now
}

// rename gives users addresses that others have to give up first. Those who wait
// for each other are renamed in one transaction.
func (s *batch) rename(ctx context.Context) error {
	holders, err := s.holders(ctx)
	if err != nil {
		return err
	}
	list := make([]renameRequest, len(s.rows))
	for i := range s.rows {
		email, _ := s.rows[i].Address() // which update found to be valid
		list[i] = renameRequest{user: *s.rows[i].UserID, email: email, holder: holders[email]}
	}
	free, order := resolveRenames(list)

	var rows []stagedAccount
	var renamed []bool
	for _, together := range order {
		if len(rows) > 0 && len(rows)+len(together) > batchSize {
			break
		}
		for _, i := range together {
			rows, renamed = append(rows, s.rows[i]), append(renamed, free[i])
		}
	}
	s.rows = rows
	if err := s.lockLinked(ctx); err != nil {
		return err
	}
	for i := range s.rows {
		r := &s.rows[i]
		email, _ := r.Address()
		if !renamed[i] {
			s.skip(r, domain.SkippedTaken)
			email = s.users[*r.UserID].Email
		}
		s.follow(r, *r.UserID, email)
		s.link(r, r.UserID, !renamed[i])
	}
	return nil
}

// resolveRenames returns which of the renames can be made, and which have to be made together:
// those that form a chain or a circle. Of several users who want one address, the first gets
// it. A rename waits for that of the address's holder, and cannot be made if the holder keeps
// the address.
func resolveRenames(list []renameRequest) (free []bool, together [][]int) {
	of, wanted := map[domain.UserID]int{}, map[string]bool{}
	free = make([]bool, len(list))
	for i, r := range list {
		free[i] = !wanted[r.email]
		of[r.user], wanted[r.email] = i, true
	}

	const unseen, following, settled = 0, 1, 2
	state := make([]int, len(list))
	group := make([]int, len(list)) // the place in together
	for i := range list {
		var path []int
		ok, into := true, -1
		for at := i; ; {
			if state[at] == settled {
				ok, into = free[at], group[at]
				break
			}
			if state[at] == following { // a circle, which this path is all of
				break
			}
			state[at], path = following, append(path, at)
			if !free[at] || list[at].holder.IsZero() {
				ok = free[at]
				break
			}
			next, moves := of[list[at].holder]
			if !moves {
				ok = false
				break
			}
			at = next
		}

		if into < 0 || !ok { // one that keeps the address keeps no other user waiting
			into = len(together)
			together = append(together, nil)
		}
		for _, at := range path {
			state[at], free[at], group[at] = settled, free[at] && ok, into
		}
		together[into] = append(together[into], path...)
		if len(together[into]) == 0 {
			together = together[:into]
		}
	}
	return free, together
}
