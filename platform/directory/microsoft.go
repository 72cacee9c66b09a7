package directory

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"partnerapi/domain"
)

// microsoftFields are the properties of an account that are read.
const microsoftFields = "id,displayName,givenName,surname,mail,department,jobTitle,accountEnabled,userType," +
	"preferredLanguage"

// microsoft reads the accounts of an Entra ID tenant from Microsoft Graph. Without
// a group it reads changes; with a group it reads all members each time.
type microsoft struct {
	*session
	base  string // Graph's address with the version
	group string // the id; empty for none
	// seen holds the accounts of the round so far. Graph may return an account again,
	// with only the properties that changed.
	seen map[string]bool
}

// microsoft returns the source of an Entra ID tenant. It rejects missing settings and addresses that are not https.
func (c connector) microsoft(settings MicrosoftSettings, secret string) (Source, error) {
	switch {
	case settings.Tenant == "" || settings.AppID == "":
		return nil, fault("Microsoft", "needs the tenant and the app's id")
	case secret == "":
		return nil, fault("Microsoft", "needs the app's client secret, and it is empty")
	}
	for _, address := range []string{c.endpoints.graph(), c.endpoints.login()} {
		if err := CheckEndpoint(address); err != nil {
			return nil, fmt.Errorf("the address of Microsoft: %w", err)
		}
	}
	credentials := clientcredentials.Config{
		ClientID: settings.AppID, ClientSecret: secret, AuthStyle: oauth2.AuthStyleInParams,
		TokenURL: c.endpoints.login() + "/" + url.PathEscape(settings.Tenant) + "/oauth2/v2.0/token",
		Scopes:   []string{c.endpoints.graph() + "/.default"},
	}
	s := &session{connector: c, vendor: "Microsoft", tokens: c.client, secret: secret, fetch: credentials.Token}
	m := &microsoft{session: s, base: c.endpoints.graph() + "/v1.0", group: settings.Group, seen: map[string]bool{}}
	s.refusal = m.refused
	s.denied = func(code, description string) error {
		return fault("Microsoft", "gives no token: check the tenant, the app's id, and that the client secret is right "+
			"and has not expired (%s)", s.quote(code, description))
	}
	return m, nil
}

// A position is a round, a space, and the link of the next page. The rounds are these and roundMembers.
const (
	roundAll     = "all"     // every account, by users/delta
	roundChanges = "changes" // the accounts that changed since a delta link
)

// roundMembers is the round of all members of a group.
func (m *microsoft) roundMembers() string { return "members/" + m.group }

// Read implements Source. It reads the group's name before the first page.
func (m *microsoft) Read(ctx context.Context, position string) iter.Seq2[Page, error] {
	r := microsoftRead{microsoft: m}
	return pages(func() (Page, error) {
		if r.link == "" {
			if err := r.begin(ctx, position); err != nil {
				return Page{}, err
			}
		}
		return r.page(ctx)
	})
}

// microsoftRead is the state of one call of Read.
type microsoftRead struct {
	*microsoft
	round, link string // of the next page; empty before begin
	groupName   string // empty if no group is synced
}

// begin sets the round and the link from a position, and reads the group's name. It returns ErrStartOver for a
// position that was stored under other settings.
func (r *microsoftRead) begin(ctx context.Context, position string) error {
	firstRound := roundAll
	if r.group != "" {
		firstRound = r.roundMembers()
	}
	round, link, _ := strings.Cut(position, " ")
	switch {
	case position == "":
		r.round, r.link = firstRound, r.firstLink()
		clear(r.seen)
	case round != firstRound && (round != roundChanges || r.group != ""), !r.isGraphLink(link):
		return ErrStartOver // another group, or another address of Graph
	default:
		r.round, r.link = round, link
	}
	if r.group == "" {
		return nil
	}
	return r.readGroup(ctx)
}

// firstLink returns the link of the first page: of all accounts, or of the group's members.
func (r *microsoftRead) firstLink() string {
	if r.group == "" {
		return r.base + "/users/delta?" + url.Values{"$select": {microsoftFields}}.Encode()
	}
	return r.base + "/groups/" + url.PathEscape(r.group) + "/transitiveMembers/microsoft.graph.user?" +
		url.Values{"$select": {microsoftFields}, "$count": {"true"}, "$top": {"999"}}.Encode()
}

// isGraphLink reports whether a link has the scheme and host of base, for which the token is.
func (m *microsoft) isGraphLink(link string) bool {
	to, err := url.Parse(link)
	if err != nil {
		return false
	}
	base, err := url.Parse(m.base)
	return err == nil && to.Scheme == base.Scheme && strings.EqualFold(to.Host, base.Host) && to.User == nil
}

// readGroup reads the name of the group.
func (r *microsoftRead) readGroup(ctx context.Context) error {
	address := r.base + "/groups/" + url.PathEscape(r.group) + "?$select=displayName"
	return r.call(ctx, http.MethodGet, address, http.Header{}, nil, func(body []byte) error {
		var group struct {
			Name string `json:"displayName"`
		}
		if err := json.Unmarshal(body, &group); err != nil {
			return r.malformed("answers with a group that can't be read: %w", err)
		}
		r.groupName = strings.TrimSpace(group.Name)
		return nil
	})
}

// microsoftPage is a response to a delta query, or a list of members.
type microsoftPage struct {
	Value     []microsoftAccount `json:"value"`
	NextLink  string             `json:"@odata.nextLink"`
	DeltaLink string             `json:"@odata.deltaLink"`
}

// page reads the next page, with the managers of its accounts, and sets link to the page after it. The last page's
// Next is the delta link for the changes after it; empty for a group.
func (r *microsoftRead) page(ctx context.Context) (Page, error) {
	header := http.Header{"Prefer": {"odata.maxpagesize=500"}}
	if r.group != "" {
		header.Set("ConsistencyLevel", "eventual") // required for a list of members of one type
	}
	var answer microsoftPage
	err := r.call(ctx, http.MethodGet, r.link, header, nil, func(body []byte) error {
		answer = microsoftPage{}
		if err := json.Unmarshal(body, &answer); err != nil {
			return r.malformed("answers with accounts that can't be read: %w", err)
		}
		return r.checkPage(answer)
	})
	if err != nil {
		return Page{}, err
	}

	page := Page{Whole: r.round != roundChanges}
	for _, a := range answer.Value {
		page.Accounts = append(page.Accounts, a.account(r.groupName, page.Whole && !r.seen[a.ID]))
		if page.Whole {
			r.seen[a.ID] = true
		}
	}
	if err := r.setManagers(ctx, page.Accounts); err != nil {
		return Page{}, err
	}
	switch {
	case answer.NextLink != "":
		r.link = answer.NextLink
		page.Next = r.round + " " + r.link
	case answer.DeltaLink != "":
		page.Last, page.Next = true, roundChanges+" "+answer.DeltaLink
	default:
		page.Last = true
	}
	return page, nil
}

// checkPage returns a retryable error for a response without a list of accounts, without a link (unless it is of a
// group, whose last page has none), with a link to itself, or with an account without an id; and a permanent error for
// a link to another host.
func (r *microsoftRead) checkPage(p microsoftPage) error {
	switch {
	case p.Value == nil:
		return r.malformed("answers with a page that has no accounts in it, not even none (value)")
	case p.NextLink == "" && p.DeltaLink == "" && r.group == "":
		return r.malformed("answers with a page that does not say how to go on (nextLink, deltaLink)")
	case p.NextLink == r.link:
		return r.malformed("answers with a page whose next one is itself")
	case slices.ContainsFunc(p.Value, func(a microsoftAccount) bool { return a.ID == "" }):
		return r.malformed("answers with an account that has no id")
	}
	for _, link := range []string{p.NextLink, p.DeltaLink} {
		if link != "" && !r.isGraphLink(link) {
			return fault("Microsoft", "answers with a link to another host, which is not followed: is the address of "+
				"Graph the one that its links name?")
		}
	}
	return nil
}

// unknownLinkCodes are the error codes for an expired link, in lower case.
var unknownLinkCodes = []string{
	"syncstatenotfound", "syncstateinvalid", "resyncrequired", "directory_expiredpagetoken", "request_expiredpagetoken",
}

// refused returns the error of a refused request: ErrStartOver for an expired link, or else a text that says what to
// do.
func (m *microsoft) refused(a answer) error {
	var response struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	_ = json.Unmarshal(a.body, &response) // if it is not JSON, response stays empty
	detail := m.quote(fmt.Sprint(a.status), response.Error.Code, response.Error.Message)
	switch {
	case a.status == http.StatusGone || slices.Contains(unknownLinkCodes, strings.ToLower(response.Error.Code)):
		return ErrStartOver
	case a.status == http.StatusUnauthorized:
		return fault("Microsoft", "refuses the token that it gave: check the addresses of Graph and of the login (%s)",
			detail)
	case a.status == http.StatusForbidden:
		return fault("Microsoft", "shows no users: grant the app the application permission User.Read.All, for a group "+
			"GroupMember.Read.All too, or Directory.Read.All, with the consent of an administrator (%s)", detail)
	case a.status == http.StatusNotFound && m.group != "":
		return fault("Microsoft", "knows no group %s in the tenant (%s)", m.group, detail)
	}
	return fault("Microsoft", "refuses the request (%s)", detail)
}

// languageOf returns the service's language for a BCP 47 tag; English if it is unknown or empty.
func languageOf(tag string) domain.Language {
	primary, _, _ := strings.Cut(strings.ToLower(tag), "-")
	switch primary {
	case "fr":
		return domain.French
	case "es":
		return domain.Spanish
	}
	return domain.English
}
