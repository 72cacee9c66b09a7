package directory

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"github.com/golang-jwt/jwt/v5"

	"partnerapi/domain"
	"partnerapi/platform/egress"
)

// serviceAccount is the JSON key of a service account, as Google hands it out.
type serviceAccount struct {
	Type         string `json:"type"`
	ClientEmail  string `json:"client_email"`
	ClientID     string `json:"client_id"`
	PrivateKey   string `json:"private_key"`
	PrivateKeyID string `json:"private_key_id"`
	TokenURI     string `json:"token_uri"`
}

// readServiceAccount parses a credentials file, whose token_uri must pass checkToken. An error says what is wrong, and
// quotes nothing of the file but its type.
func readServiceAccount(text []byte, checkToken func(string) error) (a serviceAccount, err error) {
	if json.Unmarshal(text, &a) != nil {
		return a, errors.New("the credentials file is not JSON; use the key file of a service account as downloaded from " +
			"Google (IAM, service accounts, keys, JSON)")
	}
	switch {
	case a.Type != "service_account":
		return a, fmt.Errorf("the credentials file is of type %.40q and not service_account; create a JSON key for a service "+
			"account, not for an OAuth client", a.Type)
	case a.ClientEmail == "":
		return a, errors.New("the credentials file has no client_email; download the key again")
	}
	if err := checkToken(a.TokenURI); err != nil {
		return a, errors.New("the credentials file has no token_uri that is a public https URL; download the key again")
	}
	if _, err := jwt.ParseRSAPrivateKeyFromPEM([]byte(a.PrivateKey)); err != nil {
		return a, errors.New("the credentials file has a private_key that can't be read; download the key again and " +
			"do not change the file")
	}
	return a, nil
}

// checkPublic returns an error for an address that is not https, or whose host is an IP address that package egress
// refuses. A host's name is accepted: its addresses are checked when connecting.
func checkPublic(address string) error {
	if err := CheckEndpoint(address); err != nil {
		return err
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" {
		return errors.New("not https")
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
		return egress.Check(ip)
	}
	return nil
}

// googleAccount is a user in the Admin SDK's format.
type googleAccount struct {
	ID           string `json:"id"`
	PrimaryEmail string `json:"primaryEmail"`
	// HasMailbox is nil if Google does not say it.
	HasMailbox *bool `json:"isMailboxSetup"`
	Name       struct {
		Given  string `json:"givenName"`
		Family string `json:"familyName"`
		Full   string `json:"fullName"`
	} `json:"name"`
	Suspended     bool   `json:"suspended"`
	Archived      bool   `json:"archived"`
	OrgUnitPath   string `json:"orgUnitPath"`
	Organizations []struct {
		Department string `json:"department"`
		Title      string `json:"title"`
		Primary    bool   `json:"primary"`
	} `json:"organizations"`
	Relations []struct {
		Value string `json:"value"`
		Type  string `json:"type"`
	} `json:"relations"`
	Languages []struct {
		Code       string `json:"languageCode"`
		Preference string `json:"preference"`
	} `json:"languages"`
}

// account converts the account. Every field is given, because Google omits empty values. An account without a mailbox
// has no email address: its primary one receives nothing. The department and title are
// those of the last primary organization, otherwise of the first. The manager is the first relation of the type manager
// whose value has an "@".
func (a googleAccount) account() domain.DirectoryAccount {
	email := strings.TrimSpace(a.PrimaryEmail)
	if a.HasMailbox != nil && !*a.HasMailbox {
		email = ""
	}
	d := domain.DirectoryAccount{
		ObjectID: a.ID, Guest: domain.Give(false), Enabled: domain.Give(!a.Suspended && !a.Archived),
		Email: domain.Give(email), First: domain.Give(strings.TrimSpace(a.Name.Given)),
		Last: domain.Give(strings.TrimSpace(a.Name.Family)), Display: domain.Give(strings.TrimSpace(a.Name.Full)),
		Department: domain.Give(""), JobTitle: domain.Give(""), ManagerEmail: domain.Give(""),
		Language: domain.Give(languageOf(a.language())), Group: domain.Give(a.group()),
	}
	for i, o := range a.Organizations {
		if o.Primary || i == 0 {
			d.Department, d.JobTitle = domain.Give(strings.TrimSpace(o.Department)), domain.Give(strings.TrimSpace(o.Title))
		}
	}
	for _, r := range a.Relations {
		if r.Type == "manager" && strings.Contains(r.Value, "@") {
			d.ManagerEmail = domain.Give(strings.TrimSpace(r.Value))
			break
		}
	}
	return d
}

// language returns the code of the preferred language, otherwise of the first language that is not marked as not
// preferred; empty if there is none.
func (a googleAccount) language() string {
	code := ""
	for _, l := range a.Languages {
		switch {
		case l.Preference == "preferred":
			return l.Code
		case code == "" && l.Preference != "not_preferred":
			code = l.Code
		}
	}
	return code
}

// group returns the name of the organizational unit, which is the user's group; empty for the root.
func (a googleAccount) group() string {
	path := strings.TrimRight(a.OrgUnitPath, "/")
	return path[strings.LastIndexByte(path, '/')+1:]
}
