package v1compat

import (
	"context"
	"slices"
	"testing"

	"partnerapi/domain"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// listInput is the input of a list of v2, and laterInput that of a release which added a
// filter to it.
type listInput struct {
	Query struct {
		op.Paging
		Q string `query:"q"`
	}
}

type laterInput struct {
	Query struct {
		op.Paging
		Odd *bool  `query:"odd"`
		Q   string `query:"q"`
	}
}

// aList declares a list of no rows.
func aList[In any]() op.Declaration {
	return op.DeclareList[In, string](op.Meta{ID: "numbers", Method: "GET", Path: "/numbers", Scope: domain.Read, Since: op.V2_0, Status: 200, Summary: "s"})
}

// TestCheckpointsOfLaterFilters: a walk goes on in a release that adds a filter to the list
// of v2, and in the one before, whichever process of a rolling upgrade answers.
func TestCheckpointsOfLaterFilters(t *testing.T) {
	t.Parallel()
	c := &Facade{Config: Config{Store: newMemory(domain.SystemClock{})}}
	ctx := domain.WithCaller(t.Context(), &domain.Caller{Prefix: "pk"})
	old, later, given := new(listInput), new(laterInput), new(laterInput)
	old.Query.Q, later.Query.Q, given.Query.Q, given.Query.Odd = "é", "é", "é", new(true)
	begins := func(o op.Declaration, in any, offset int) walk {
		t.Helper()
		w, err := c.beginPage(ctx, "route", o, in, pageRequest{limit: 5, offset: offset})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	before, after := aList[listInput](), aList[laterInput]()
	if err := c.saveCheckpoint(ctx, begins(before, old, 0), 5, "first"); err != nil {
		t.Fatal(err)
	}
	w := begins(after, later, 5)
	if w.cursor != "first" {
		t.Errorf("the later release goes on from %q", w.cursor)
	}
	if err := c.saveCheckpoint(ctx, w, 5, "second"); err != nil {
		t.Fatal(err)
	}
	if got := begins(before, old, 10).cursor; got != "second" {
		t.Errorf("the release before goes on from %q", got)
	}
	if got := begins(after, given, 5).cursor; got != "" {
		t.Errorf("another list, with the filter, goes on from %q", got)
	}
}

// TestTotalOfAWalk: no total stops a walker before the rows that follow, and none keeps one
// going beyond the end. TestWalksOfAMovingList holds whole walks to it.
func TestTotalOfAWalk(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		walk        walk
		rows, shown int
		more        bool
		want        int
	}{
		{walk{}, 7, 5, true, 7},
		{walk{}, 5, 5, true, 6}, // counted before the row that follows came
		{walk{pageRequest: pageRequest{offset: 50}}, 7, 0, false, 7},
		{walk{pageRequest: pageRequest{offset: 50}, cursor: "c"}, 7, 0, false, 50},
		{walk{pageRequest: pageRequest{offset: 50}, cursor: "c"}, 99, 5, true, 99},
		{walk{pageRequest: pageRequest{offset: 50}, cursor: "c"}, 99, 5, false, 55}, // rows came in behind the walker
		{walk{pageRequest: pageRequest{offset: 50}, cursor: "c"}, 99, 0, false, 50},
	} {
		if got := c.walk.total(c.rows, c.shown, c.more); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// outdated is a store whose cursors are another release's.
type outdated struct{ Store }

func (outdated) Cursor(context.Context, List, int) (string, error) { return "b2xk", nil }

func TestOutdatedCheckpointIsCounted(t *testing.T) {
	t.Parallel()
	s := start(t, setup{store: outdated{newMemory(domain.SystemClock{})}})
	tenant := s.AddPartner("Partner")
	client := s.AddClient(tenant, "Client").ID
	for i := range 3 {
		s.AddUser(tenant, client, v2test.Email(i))
	}
	p := s.list("/v1/clients/"+s.number(client)+"/users?limit=1&offset=1", tenant.Key)
	if got := p.texts("email"); !slices.Equal(got, []string{v2test.Email(1)}) || p.Total != 3 {
		t.Errorf("counted to %v of %d", got, p.Total)
	}
}
