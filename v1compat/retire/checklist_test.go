package retire

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/v1compat/usage"
)

// outcomes returns the outcomes of a checklist as one word each.
func outcomes(list []Condition) string {
	var words []string
	for _, c := range list {
		words = append(words, string(c.Outcome))
	}
	return strings.Join(words, " ")
}

// TestChecklist verifies which conditions are met, that each of the others has a command, and that End would be refused
// exactly if one is unmet.
func TestChecklist(t *testing.T) {
	t.Parallel()
	announced := &Announcement{noon.AddDate(-2, 0, 0), noon.AddDate(-1, 0, 0)}
	called := []usage.LastCall{{Prefix: "pk_a", Partner: "O'Neil", At: noon}}
	for name, c := range map[string]struct {
		state State
		e     EndRequest
		want  string
	}{
		"all is met":       {State{Announcement: announced, Release: "2.5"}, EndRequest{Partners: 1}, "met met met met met"},
		"not announced":    {State{}, EndRequest{}, "unmet unmet met met met"},
		"before both":      {State{Announcement: &Announcement{noon.AddDate(0, -1, 0), noon.AddDate(1, 0, 0)}}, EndRequest{}, "unmet unmet met met met"},
		"twelve months":    {State{Announcement: &Announcement{noon.AddDate(-1, 0, 0), noon}}, EndRequest{}, "met met met met met"},
		"one moment early": {State{Announcement: &Announcement{noon.AddDate(-1, 0, 0).Add(1), noon.Add(1)}}, EndRequest{}, "unmet unmet met met met"},
		"called":           {State{Announcement: announced}, EndRequest{Calls: called}, "met met unmet met met"},
		"called, forced":   {State{Announcement: announced}, EndRequest{Calls: called, Force: true}, "met met warning met met"},
		"missing":          {State{Announcement: announced, Release: "2.1"}, EndRequest{Missing: []string{"POST /v1/clients"}, Force: true}, "met met met unmet met"},
		"not notified":     {State{Announcement: announced}, EndRequest{Unnotified: []Unnotified{{Name: "Acme"}}, Partners: 2}, "met met met met warning"},
	} {
		list := c.state.Checklist(c.e, noon)
		if got := outcomes(list); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
		for _, item := range list {
			if (item.Outcome == Met) != (len(item.Commands) == 0) || item.Found == "" || item.Details == nil || item.Commands == nil {
				t.Errorf("%s: got %+v", name, item)
			}
		}
		err := c.state.CheckEnd(c.e, noon)
		if isUnmet := strings.Contains(c.want, "unmet"); (err != nil) != isUnmet {
			t.Errorf("%s: got error %v, want one: %t", name, err, isUnmet)
		}
	}
}

// TestCommandsOfChecklist verifies that the commands can be run as they are printed.
func TestCommandsOfChecklist(t *testing.T) {
	t.Parallel()
	announced := &State{Announcement: &Announcement{noon.AddDate(-2, 0, 0), noon.AddDate(-1, 0, 0)}, Release: "2.1"}
	calls := func(n int) (list []usage.LastCall) {
		for i := range n {
			list = append(list, usage.LastCall{Prefix: "pk", Partner: fmt.Sprint("P", i), At: noon}, usage.LastCall{Prefix: "pk", Partner: "P0", At: noon})
		}
		return list
	}
	for name, c := range map[string]struct {
		state *State
		e     EndRequest
		item  int
		want  []string
	}{
		"announce":       {&State{}, EndRequest{}, 0, []string{"partnerapi v1 announce --sunset 2028-06-15"}},
		"quoted":         {announced, EndRequest{Calls: []usage.LastCall{{Partner: "O'Neil", At: noon}}}, 2, []string{`partnerapi v1 remind --partner 'O'\''Neil'`}},
		"each":           {announced, EndRequest{Calls: calls(2)}, 2, []string{"partnerapi v1 remind --partner 'P0'", "partnerapi v1 remind --partner 'P1'"}},
		"all":            {announced, EndRequest{Calls: calls(4)}, 2, []string{"partnerapi v1 remind"}},
		"deleted":        {announced, EndRequest{Calls: []usage.LastCall{{At: noon}}}, 2, []string{"partnerapi v1 remind"}},
		"not announced":  {&State{}, EndRequest{Calls: calls(1)}, 2, []string{"partnerapi v1 status --operations"}},
		"serve":          {announced, EndRequest{Missing: []string{"a"}, Release: "2.3"}, 3, []string{"partnerapi serve --release 2.3"}},
		"add an admin":   {announced, EndRequest{Unnotified: []Unnotified{{"Acme", true}}}, 4, []string{"partnerapi admins add EMAIL --name NAME --partner 'Acme'"}},
		"notify and add": {announced, EndRequest{Unnotified: []Unnotified{{"Acme", true}, {"Hill", false}}}, 4, []string{"partnerapi v1 remind --partner 'Hill'", "partnerapi admins add EMAIL --name NAME --partner 'Acme'"}},
	} {
		if got := c.state.Checklist(c.e, noon)[c.item].Commands; !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	if got := announceCommand(time.Date(2028, 2, 29, 23, 0, 0, 0, time.UTC)); !strings.HasSuffix(got, " 2029-03-01") {
		t.Errorf("got %s, want the first possible day", got)
	}
}
