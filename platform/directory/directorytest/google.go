package directorytest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"partnerapi/platform/directory"
)

// scope is the scope granted to the service account.
const scope = "https://www.googleapis.com/auth/admin.directory.user.readonly"

const (
	googleAdmin   = "admin@example.com"
	googleAccount = "sync@project.iam.gserviceaccount.com"
)

// Google is a server of a directory with Google's Admin SDK, which also issues tokens.
type Google struct {
	server
	key *rsa.PrivateKey
}

// NewGoogle starts a server. The caller closes it.
func NewGoogle(d *Directory) *Google {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err) // the machine has no randomness
	}
	g := &Google{key: key}
	routes := http.NewServeMux()
	routes.HandleFunc("POST /token", g.token)
	routes.HandleFunc("GET /admin/directory/v1/users", g.users)
	g.start(d, routes)
	return g
}

// Endpoints returns the server's address.
func (g *Google) Endpoints() directory.Endpoints { return directory.Endpoints{Google: g.URL} }

// Settings returns the settings of a connection to one domain, or to all if domain is empty.
func (g *Google) Settings(domain string) json.RawMessage {
	text, _ := json.Marshal(directory.GoogleSettings{Admin: googleAdmin, Domain: domain})
	return text
}

// Credentials returns the service account's key file.
func (g *Google) Credentials() []byte {
	der, err := x509.MarshalPKCS8PrivateKey(g.key)
	if err != nil {
		panic(err) // it is an RSA key
	}
	text, _ := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "project", "client_email": googleAccount, "client_id": "1234567890",
		"private_key_id": "f00d", "private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		"token_uri": g.URL + "/token",
	})
	return text
}

// token answers the JWT bearer grant.
func (g *Google) token(w http.ResponseWriter, r *http.Request) {
	refuse := func(code, description string) {
		reply(w, http.StatusBadRequest, map[string]any{"error": code, "error_description": description})
	}
	var claims struct {
		Iss, Sub, Scope, Aud string
		Exp                  int64
	}
	switch {
	case r.FormValue("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer":
		refuse("unsupported_grant_type", "Invalid grant_type")
	case !g.signed(r.FormValue("assertion"), &claims):
		refuse("invalid_grant", "Invalid JWT Signature.")
	case claims.Iss != googleAccount || claims.Aud != g.URL+"/token" || claims.Exp < time.Now().Unix():
		refuse("invalid_grant", "Invalid JWT: check the iss, aud and exp values.")
	case claims.Sub != googleAdmin:
		refuse("invalid_grant", "Invalid email or User ID")
	case claims.Scope != scope:
		refuse("unauthorized_client", "Client is unauthorized to retrieve access tokens using this method.")
	default:
		g.giveToken(w)
	}
}

// signed decodes an assertion's claims; false unless the service account signed it.
func (g *Google) signed(assertion string, claims any) bool {
	parts := strings.Split(assertion, ".")
	if len(parts) != 3 {
		return false
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	return err == nil && rsa.VerifyPKCS1v15(&g.key.PublicKey, crypto.SHA256, sum[:], signature) == nil &&
		unseal(parts[1], claims)
}

// users answers users.list.
func (g *Google) users(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	after := ""
	switch {
	case !g.authorized(r):
		refuse(w, http.StatusUnauthorized, "authError", "Invalid Credentials")
		return
	case (query.Get("customer") == "my_customer") == (query.Get("domain") != ""):
		refuse(w, http.StatusBadRequest, "badRequest", "Bad Request")
		return
	case query.Get("pageToken") != "" && !unseal(query.Get("pageToken"), &after):
		refuse(w, http.StatusBadRequest, "invalid", "Invalid Input: pageToken")
		return
	}
	most, _ := strconv.Atoi(query.Get("maxResults"))
	size := g.size(most, 500)

	g.directory.mu.Lock()
	defer g.directory.mu.Unlock()
	list := g.directory.sorted()
	at, _ := slices.BinarySearchFunc(list, after, func(e *entry, after string) int {
		if e.Email+" "+e.ID <= after {
			return -1
		}
		return 1
	})
	answer := map[string]any{"kind": "admin#directory#users"}
	users := []any{}
	for ; at < len(list); at++ {
		e := list[at]
		if domain := query.Get("domain"); domain != "" && !strings.HasSuffix(e.Email, "@"+domain) {
			continue
		}
		if len(users) == size {
			answer["nextPageToken"] = seal(after)
			break
		}
		users = append(users, g.user(e))
		after = e.Email + " " + e.ID
	}
	if len(users) > 0 { // Google leaves out what is empty
		answer["users"] = users
	}
	reply(w, http.StatusOK, answer)
}

// user returns an account in Google's format, without empty values.
func (g *Google) user(e *entry) map[string]any {
	user := map[string]any{
		"kind": "admin#directory#user", "id": e.ID, "primaryEmail": e.Email, "isMailboxSetup": !e.NoMailbox,
		"suspended": e.Disabled, "archived": false,
		"orgUnitPath": "/" + strings.TrimPrefix(e.OrgUnit, "/"),
		"name":        map[string]any{"givenName": e.First, "familyName": e.Last, "fullName": e.First + " " + e.Last},
	}
	if e.Department+e.Title != "" {
		user["organizations"] = []any{map[string]any{"department": e.Department, "title": e.Title, "primary": true}}
	}
	if manager := g.directory.email(e.Manager); manager != "" {
		user["relations"] = []any{map[string]any{"value": manager, "type": "manager"}}
	}
	if e.Language != "" {
		user["languages"] = []any{map[string]any{"languageCode": e.Language, "preference": "preferred"}}
	}
	return user
}
