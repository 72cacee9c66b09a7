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
	"golang.org/x/oauth2/jwt"
)

// googleScope is the scope that the service account is granted.
const googleScope = "https://www.googleapis.com/auth/admin.directory.user.readonly"

// googleFields are the parts of a response that are read.
const googleFields = "kind,nextPageToken,users(id,primaryEmail,isMailboxSetup,name(givenName,familyName,fullName)," +
	"suspended,archived,orgUnitPath,organizations,relations,languages)"

// google reads all accounts of a Google Workspace, each time. The place of a position is a page token.
type google struct {
	*session
	address  string // of the list, with its parameters
	clientID string
	admin    string
}

// newGoogle returns the source of a Google Workspace. It rejects an invalid administrator, endpoint or key. The key's
// address for tokens must be public, unless the endpoint is another than Google's own.
func (c connector) newGoogle(settings GoogleSettings, credentials []byte) (Source, error) {
	if !strings.Contains(settings.Admin, "@") {
		return nil, errorf("Google", "requires the email address of an administrator for whom the service account acts")
	}
	if err := CheckEndpoint(c.endpoints.google()); err != nil {
		return nil, fmt.Errorf("the address of Google: %w", err)
	}

	tokenClient, check := c.public, checkPublic
	if c.endpoints.google() != (Endpoints{}).google() { // the operator's own choice
		tokenClient, check = c.client, CheckEndpoint
	}
	account, err := readServiceAccount(credentials, check)
	if err != nil {
		return nil, err
	}

	grant := jwt.Config{
		Email: account.ClientEmail, PrivateKey: []byte(account.PrivateKey), PrivateKeyID: account.PrivateKeyID,
		Subject: settings.Admin, Scopes: []string{googleScope}, TokenURL: account.TokenURI,
	}
	query := url.Values{
		"maxResults": {"500"}, "orderBy": {"email"}, "projection": {"full"}, "fields": {googleFields},
	}
	if settings.Domain != "" {
		query.Set("domain", settings.Domain)
	} else {
		query.Set("customer", "my_customer")
	}

	fetch := func(ctx context.Context) (*oauth2.Token, error) { return grant.TokenSource(ctx).Token() }
	s := &session{connector: c, vendor: "Google", tokenClient: tokenClient, fetch: fetch}
	g := &google{
		session: s, address: c.endpoints.google() + "/admin/directory/v1/users?" + query.Encode(),
		clientID: account.ClientID, admin: settings.Admin,
	}
	s.requestError, s.tokenError = g.requestError, g.tokenError
	return g, nil
}

// Read implements Source.
func (g *google) Read(ctx context.Context, position string) iter.Seq2[Page, error] {
	return pages(func() (Page, error) {
		token, err := placeOf(position)
		if err != nil {
			return Page{}, err
		}
		page, err := g.readPage(ctx, token)
		position = page.Next
		return page, err
	})
}

// readPage reads the page of a token, or the first page if the token is empty. A malformed page is requested again.
func (g *google) readPage(ctx context.Context, token string) (Page, error) {
	address := g.address
	if token != "" {
		address += "&" + url.Values{"pageToken": {token}}.Encode()
	}

	type userList struct {
		Kind  string          `json:"kind"`
		Next  string          `json:"nextPageToken"`
		Users []googleAccount `json:"users"`
	}
	answer, err := call(ctx, g.session, address, nil, nil /* GET */, "accounts", func(l userList) error {
		switch {
		case l.Kind != "admin#directory#users":
			return g.malformedError("returned a page that is not a list of users (kind)")
		case l.Next != "" && l.Next == token:
			return g.malformedError("returned a page that links to itself as the next page")
		case slices.ContainsFunc(l.Users, func(a googleAccount) bool { return a.ID == "" }):
			return g.malformedError("returned an account without an ID")
		}
		return nil
	})

	page := Page{Last: answer.Next == "", Whole: true} // every run reads all accounts
	if !page.Last {
		page.Next = positionOf(answer.Next)
	}
	for _, a := range answer.Users {
		page.Accounts = append(page.Accounts, a.account())
	}
	return page, err
}

// throttleReasons are the reasons in Google's errors for throttled requests. Most have the status 403, as refusals
// have.
var throttleReasons = []string{"rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded", "dailyLimitExceeded"}

// requestError returns the error of a refused request: retryable if it was throttled, ErrStartOver for an expired page
// token, otherwise with a text that says what to do.
func (g *google) requestError(a answer) error {
	var response struct {
		Error struct {
			Message string `json:"message"`
			Errors  []struct {
				Reason   string `json:"reason"`
				Location string `json:"location"`
			} `json:"errors"`
		} `json:"error"`
	}
	_ = json.Unmarshal(a.body, &response) // if it is not JSON, response stays empty
	reason, location := "", ""
	if list := response.Error.Errors; len(list) > 0 {
		reason, location = list[0].Reason, list[0].Location
	}

	detail := g.quote(fmt.Sprint(a.status), reason, response.Error.Message)
	switch {
	case slices.Contains(throttleReasons, reason):
		return g.throttledError(unknownWait)
	case a.status == http.StatusGone || location == "pageToken" || strings.Contains(response.Error.Message, "pageToken"):
		return ErrStartOver
	case reason == "accessNotConfigured":
		return errorf("Google", "does not allow reading users; enable the Admin SDK API in the project of the service account (%s)",
			detail)
	case a.status == http.StatusForbidden, a.status == http.StatusUnauthorized:
		return errorf("Google", "does not allow reading users; %s must be an administrator who may read users, and the client %s must "+
			"be granted %s by domain-wide delegation (%s)", g.admin, g.clientID, googleScope, detail)
	case a.status == http.StatusNotFound:
		return errorf("Google", "found no such domain or customer (%s)", detail)
	}
	return errorf("Google", "rejected the request (%s)", detail)
}

// tokenError returns the error of a refused request for a token. Its text says what to do.
func (g *google) tokenError(code, description string) error {
	detail := g.quote(code, description)
	switch code {
	case "unauthorized_client", "access_denied":
		return errorf("Google", "issued no token; grant the client %s the scope %s by domain-wide delegation, in the admin "+
			"console under API controls (%s)", g.clientID, googleScope, detail)
	case "invalid_grant":
		return errorf("Google", "issued no token; check that %s is a user, that the key of the service account was not "+
			"deleted, and that this machine's clock is correct (%s)", g.admin, detail)
	}
	return errorf("Google", "issued no token; check the service account (%s)", detail)
}
