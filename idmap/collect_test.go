package idmap

import (
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/domain"
)

type page struct {
	paging
	Owner   Ref[domain.ClientKind]
	Items   []item
	First   *item
	Fixed   [2]Ref[domain.GroupKind]
	Made    time.Time
	Names   []string
	private Ref[domain.ClientKind]
}

type paging struct{ Next *Ref[domain.ClientKind] }

type item struct {
	Report   TextRef[domain.ReportKind]
	Groups   []*Ref[domain.GroupKind]
	Children []item
}

func TestNumberSetsEveryRef(t *testing.T) {
	t.Parallel()
	db, r := registry(t)
	create(t, db, Client, 1, 2)
	create(t, db, Group, 3, 4)
	create(t, db, Report, 5, 6)
	next := RefTo(domain.ClientID(object(2)))
	group := RefTo(domain.GroupID(object(4)))
	first := item{Report: TextRef[domain.ReportKind]{ID: domain.ReportID(object(6))}, Groups: []*Ref[domain.GroupKind]{nil, &group}}
	out := &page{
		paging: paging{&next},
		Owner:  RefTo(domain.ClientID(object(1))),
		Items:  []item{{}, {Children: []item{first, {Report: TextRef[domain.ReportKind]{ID: domain.ReportID(object(5))}}}}},
		Fixed:  [2]Ref[domain.GroupKind]{1: RefTo(domain.GroupID(object(3)))},
		// Nothing outside can reach it, and so nothing will write it.
		private: RefTo(domain.ClientID(object(9))),
	}
	out.First = &out.Items[1].Children[0]
	if err := Number(t.Context(), r, out); err != nil {
		t.Fatal(err)
	}
	for what, got := range map[string][2]int64{
		"the first client":              {out.Owner.Number, 1},
		"an embedded pointer's":         {next.Number, 2},
		"a zero item's report":          {out.Items[0].Report.Number, 0},
		"a nested report":               {out.Items[1].Children[0].Report.Number, 2},
		"another nested report":         {out.Items[1].Children[1].Report.Number, 1},
		"a group behind a pointer":      {group.Number, 2},
		"a zero group in an array":      {out.Fixed[0].Number, 0},
		"a group in an array":           {out.Fixed[1].Number, 1},
		"a field that is not exported:": {out.private.Number, 0},
	} {
		if got[0] != got[1] {
			t.Errorf("%s has number %d, want %d", what, got[0], got[1])
		}
	}
}

func TestResolveSetsEveryRef(t *testing.T) {
	t.Parallel()
	db, r := registry(t)
	create(t, db, Client, 1)
	create(t, db, Group, 2)
	path := struct{ Client Ref[domain.ClientKind] }{Ref[domain.ClientKind]{Number: 1}}
	body := struct {
		Groups []Ref[domain.GroupKind]
		Report *TextRef[domain.ReportKind]
	}{Groups: []Ref[domain.GroupKind]{{Number: 1}, {Number: 2, ID: domain.GroupID(object(9))}, {}, {Number: MaxNumber + 2}, {Number: 1}}}
	var none *page
	if _, err := Resolve(t.Context(), r, &path, nil, none, &body, &struct{ Limit int }{3}); err != nil {
		t.Fatal(err)
	}
	if path.Client.ID != domain.ClientID(object(1)) || body.Groups[0].ID != domain.GroupID(object(2)) {
		t.Errorf("resolved to %+v %+v", path, body)
	}
	if !body.Groups[1].ID.IsZero() || !body.Groups[2].ID.IsZero() || !body.Groups[3].ID.IsZero() || body.Groups[4] != body.Groups[0] {
		t.Errorf("unused numbers, or one twice, resolve to %+v", body.Groups)
	}
}

func TestWhatCannotBeCollected(t *testing.T) {
	t.Parallel()
	db, r := registry(t)
	create(t, db, Client, 1)
	for _, c := range []struct {
		out  any
		want string
	}{
		{&struct {
			Refs map[string]Ref[domain.ClientKind]
		}{}, "in a map"},
		{&struct{ User Ref[domain.UserKind] }{}, "no numbers of this kind"},
		{Ref[domain.ClientKind]{}, "pass a pointer"},
		{&struct{ Client Ref[domain.ClientKind] }{RefTo(domain.ClientID(object(2)))}, "has no number"},
	} {
		if err := Number(t.Context(), r, c.out); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%T: %v, want %s", c.out, err, c.want)
		}
	}
	// Where there can be no Ref nothing is looked at, let alone looked up.
	closed := openURL(t, "postgres://127.0.0.1:1/none")
	if err := Number(t.Context(), New(closed, 0), &struct{ Values map[string]any }{}); err != nil {
		t.Error(err)
	}
}

// TestResolvedIDs: what Refs with a number stand for, the zero ID of those that were not
// resolved, and nothing of Refs without a number.
func TestResolvedIDs(t *testing.T) {
	t.Parallel()
	id := domain.ClientID{15: 1}
	value := struct {
		Known, Unknown, None Ref[domain.ClientKind]
		List                 []Ref[domain.PolicyKind]
	}{
		Known: Ref[domain.ClientKind]{Number: 7, ID: id}, Unknown: Ref[domain.ClientKind]{Number: 8},
		None: RefTo(id), List: []Ref[domain.PolicyKind]{{Number: 9, ID: domain.PolicyID{15: 2}}},
	}
	held, err := ResolvedIDs(&value)
	want := []IDKey{{Client, UUID(id)}, {Client, UUID{}}, {Policy, UUID{15: 2}}}
	if err != nil || !slices.Equal(held, want) {
		t.Errorf("%v, %v, not %v", held, err, want)
	}
	if _, err := ResolvedIDs(struct{ Known Ref[domain.ClientKind] }{}); err == nil {
		t.Error("a value that cannot be set is taken")
	}
}
