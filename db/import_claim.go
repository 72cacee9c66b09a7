package db

import (
	"context"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// claim is a name or an address that an object is to have; of a scope, such as its
// client, only one has it. An empty key gives up what the object has.
type claim struct {
	id         [16]byte
	scope, key string
}

func (k claim) name() string { return k.scope + "/" + k.key }

// holderRow is an object that has a name of a scope.
type holderRow struct {
	ID    domain.PartnerID // of whichever kind
	Scope string
	Key   string
}

// settledClaims is what became of claims.
type settledClaims struct {
	// lost are the objects that cannot have what they claim, with who has it.
	lost map[[16]byte][16]byte
	// giving are the objects whose names others of the batch get. For no two may have
	// one even within a statement, they give them up first.
	giving [][16]byte
}

// settleClaims says which claims of a batch can be met. Each claims another name than
// it has. The query finds who has names: the columns id, scope and key of objects with
// the scopes ?0 and the keys ?1, of which it may return more.
func (c *Change) settleClaims(ctx context.Context, claims []claim, query string) (settledClaims, error) {
	if len(claims) == 0 {
		return settledClaims{}, nil
	}
	scopes, keys := make([]string, len(claims)), make([]string, len(claims))
	for i, k := range claims {
		scopes[i], keys[i] = k.scope, k.key
	}
	rows, err := pg.All[holderRow](ctx, c, "look for names", pg.SQL(query, scopes, keys))
	held := make(map[string][16]byte, len(rows))
	for _, r := range rows {
		held[claim{scope: r.Scope, key: r.Key}.name()] = r.ID
	}
	return settle(claims, held), err
}

// settle is settleClaims, where held are those who have names. A name that its holder
// gives up in the batch is free; of those who want one name the first gets it.
func settle(claims []claim, held map[string][16]byte) settledClaims {
	out := settledClaims{lost: map[[16]byte][16]byte{}}
	moves := make(map[[16]byte]bool, len(claims))
	for _, k := range claims {
		moves[k.id] = true
	}
	for settled := false; !settled; {
		settled = true
		out.giving = nil
		taken := map[string][16]byte{}
		for _, k := range claims {
			if _, lost := out.lost[k.id]; lost || k.key == "" {
				continue
			}
			by, busy := held[k.name()]
			first, twice := taken[k.name()]
			switch {
			case twice:
				out.lost[k.id], moves[k.id], settled = first, false, false
				continue
			case busy && !moves[by]:
				out.lost[k.id], moves[k.id], settled = by, false, false
				continue
			case busy:
				out.giving = append(out.giving, by)
			}
			taken[k.name()] = k.id
		}
	}
	return out
}

// giveUp takes their keys, as of names, from objects that give them up.
func (c *Change) giveUp(ctx context.Context, s settledClaims, table, column string) error {
	if len(s.giving) == 0 {
		return nil
	}
	_, err := pg.Exec(ctx, c, "take names away", pg.SQL(
		"UPDATE "+table+" SET "+column+" = '~' || id WHERE id = ANY(?::uuid[])", s.giving))
	return err
}
