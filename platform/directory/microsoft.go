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

// trackedFields are the properties whose changes are reported. A change of the manager is reported only if it is
// selected, and then without the manager's properties.
const trackedFields = microsoftFields + ",manager"

// microsoft reads the accounts of an Entra ID tenant from Microsoft Graph. Without
// a group it reads changes; with a group it reads all members each time.
type microsoft struct {
	*session
	base  string // Graph's address with the version
	group string // the id of the group whose members are read; empty for all accounts

	// The state of the current Read: the round and link of the next page, empty before begin, and the group's name.
	round, link, groupName string
}

// newMicrosoft returns the source of an Entra ID tenant. It rejects missing settings, and endpoints that CheckEndpoint
// rejects.
func (c connector) newMicrosoft(settings MicrosoftSettings, secret string) (Source, error) {
	switch {
	case settings.Tenant == "" || settings.AppID == "":
		return nil, errorf("Microsoft", "requires the tenant and the app ID")
	case secret == "":
		return nil, errorf("Microsoft", "requires the app's client secret, which is empty")
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
	s := &session{connector: c, vendor: "Microsoft", tokenClient: c.client, secret: secret, fetch: credentials.Token}
	m := &microsoft{session: s, base: c.endpoints.graph() + "/v1.0", group: settings.Group}
	s.requestError = m.requestError
	s.tokenError = func(code, description string) error {
		return errorf("Microsoft", "issued no token; check the tenant, the app ID, and that the client secret is correct "+
			"and has not expired (%s)", s.quote(code, description))
	}
	return m, nil
}

// A round is a sequence of pages: of all accounts, of the changes since the last round, or of the members of a group.
// The place of a position is the name of a round, a space, and the link of the next page. The names are these and that
// of roundMembers.
const (
	roundAll     = "all"     // every account, by users/delta
	roundChanges = "changes" // the accounts that changed since a delta link
)

// roundMembers returns the name of the round that reads the group's members.
func (m *microsoft) roundMembers() string { return "members/" + m.group }

// Read implements Source. It reads the group's name before the first page.
func (m *microsoft) Read(ctx context.Context, position string) iter.Seq2[Page, error] {
	m.link = ""
	return pages(func() (Page, error) {
		if m.link == "" {
			if err := m.begin(ctx, position); err != nil {
				return Page{}, err
			}
		}
		return m.readPage(ctx)
	})
}

// begin sets the round and the link from a position, and reads the group's name, if a group is set. It returns
// errForeign for a position that was stored under other settings.
func (m *microsoft) begin(ctx context.Context, position string) error {
	place, err := placeOf(position)
	if err != nil {
		return err
	}
	firstRound := roundAll
	if m.group != "" {
		firstRound = m.roundMembers()
	}
	round, link, _ := strings.Cut(place, " ")
	sameSettings := round == firstRound || m.group == "" && round == roundChanges
	switch {
	case place == "":
		m.round, m.link = firstRound, m.firstLink()
	case !sameSettings || !m.isGraphLink(link): // stored for another group, for none, or for another address of Graph
		return errForeign
	default:
		m.round, m.link = round, link
	}
	if m.group == "" {
		return nil
	}
	return m.readGroupName(ctx)
}

// firstLink returns the link of the first page: of all accounts, or of the group's members.
func (m *microsoft) firstLink() string {
	if m.group == "" {
		return m.base + "/users/delta?" + url.Values{"$select": {trackedFields}}.Encode()
	}
	return m.base + "/groups/" + url.PathEscape(m.group) + "/transitiveMembers/microsoft.graph.user?" +
		url.Values{"$select": {microsoftFields}, "$count": {"true"}, "$top": {"999"}}.Encode()
}

// isGraphLink reports whether a link has the scheme and host of base, to which the token may be sent.
func (m *microsoft) isGraphLink(link string) bool {
	to, err := url.Parse(link)
	if err != nil {
		return false
	}
	base, err := url.Parse(m.base)
	return err == nil && to.Scheme == base.Scheme && strings.EqualFold(to.Host, base.Host) && to.User == nil
}

// readGroupName reads the name of the group.
func (m *microsoft) readGroupName(ctx context.Context) error {
	type group struct {
		Name string `json:"displayName"`
	}
	address := m.base + "/groups/" + url.PathEscape(m.group) + "?$select=displayName"
	answer, err := call(ctx, m.session, address, nil, nil /* GET */, "a group", func(group) error { return nil })
	m.groupName = strings.TrimSpace(answer.Name)
	return err
}

// microsoftPage is a response to a delta query, or a list of members.
type microsoftPage struct {
	Value     []microsoftAccount `json:"value"`
	NextLink  string             `json:"@odata.nextLink"`
	DeltaLink string             `json:"@odata.deltaLink"`
}

// readPage reads the page at link, with the managers of its accounts, and sets link to the next page. On the last page,
// Next is the position from which the next run reads: that of the changes since then, or empty for a group.
func (m *microsoft) readPage(ctx context.Context) (Page, error) {
	header := http.Header{"Prefer": {"odata.maxpagesize=500"}}
	if m.group != "" {
		header.Set("ConsistencyLevel", "eventual") // required for a list of members of one type
	}
	answer, err := call(ctx, m.session, m.link, header, nil /* GET */, "accounts", m.checkPage)
	if err != nil {
		return Page{}, err
	}

	page := Page{Whole: m.round != roundChanges}
	for _, a := range answer.Value {
		page.Accounts = append(page.Accounts, a.account(m.groupName))
	}
	if err := m.setManagers(ctx, page.Accounts); err != nil {
		return Page{}, err
	}
	switch {
	case answer.NextLink != "":
		m.link = answer.NextLink
		page.Next = positionOf(m.round + " " + m.link)
	case answer.DeltaLink != "":
		page.Last, page.Next = true, positionOf(roundChanges+" "+answer.DeltaLink)
	default: // the last page of a group
		page.Last = true
	}
	return page, nil
}

// checkPage returns a retryable error for a page without a list of accounts, without a link to continue from (which the
// last page of a group lacks), with a link to itself, or with an account without an id. It returns a permanent error
// for a link to another host.
func (m *microsoft) checkPage(p microsoftPage) error {
	switch {
	case p.Value == nil:
		return m.malformedError("returned a page without a list of accounts (value)")
	case p.NextLink == "" && p.DeltaLink == "" && m.group == "":
		return m.malformedError("returned a page without a link to continue from (nextLink, deltaLink)")
	case p.NextLink == m.link:
		return m.malformedError("returned a page that links to itself as the next page")
	case slices.ContainsFunc(p.Value, func(a microsoftAccount) bool { return a.ID == "" }):
		return m.malformedError("returned an account without an ID")
	}
	for _, link := range []string{p.NextLink, p.DeltaLink} {
		if link != "" && !m.isGraphLink(link) {
			return errorf("Microsoft", "returned a link to another host, which the service does not follow; check that the "+
				"address of Graph is the one in its links")
		}
	}
	return nil
}

// unknownLinkCodes are the error codes for an expired link, in lower case.
var unknownLinkCodes = []string{
	"syncstatenotfound", "syncstateinvalid", "resyncrequired", "directory_expiredpagetoken", "request_expiredpagetoken",
}

// requestError returns the error of a refused request: ErrStartOver for an expired link, otherwise with a text that
// says what to do.
func (m *microsoft) requestError(a answer) error {
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
		return errorf("Microsoft", "rejected the token that it issued; check the addresses of Graph and of the login (%s)",
			detail)
	case a.status == http.StatusForbidden:
		return errorf("Microsoft", "does not allow the app to read users; grant it the application permission User.Read.All, for a "+
			"group also GroupMember.Read.All, or Directory.Read.All, with the consent of an administrator (%s)", detail)
	case a.status == http.StatusNotFound && m.group != "":
		return errorf("Microsoft", "found no group %s in the tenant (%s)", m.group, detail)
	}
	return errorf("Microsoft", "rejected the request (%s)", detail)
}

// languageOf returns the service's language for a BCP 47 tag, in which "_" counts as "-"; English if it is unknown or
// empty.
func languageOf(tag string) domain.Language {
	tag = strings.ToLower(tag)
	if i := strings.IndexAny(tag, "-_"); i >= 0 {
		tag = tag[:i]
	}
	switch tag {
	case "fr":
		return domain.French
	case "es":
		return domain.Spanish
	}
	return domain.English
}
