package v1compat

import (
	"net/http"
	"slices"
	"strings"

	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
)

// Partner is v1's form of a partner.
type Partner struct {
	PartnerName string  `json:"partner_name" doc:"The partner's name."`
	CreatedDate Time    `json:"created_date" doc:"When the partner was created."`
	Admins      []Admin `json:"admins" doc:"The admins who have access to all clients."`
}

// Admin is v1's form of a dashboard admin.
type Admin struct {
	ID          UUID[domain.AdminKind] `json:"id" doc:"UUID of the admin."`
	Email       string                 `json:"email" doc:"The email address that the admin signs in with."`
	Role        AdminRole              `json:"role" doc:"The admin's permissions: an Administrator can make changes, and a User can only read."`
	FirstName   string                 `json:"first_name" doc:"The part of the name before the last space."`
	LastName    string                 `json:"last_name" doc:"The part of the name after the last space. Empty if the name has no space."`
	CreatedDate Time                   `json:"created_date" doc:"When the admin was created."`
}

// AdminRole is v1's coarser role of an admin.
type AdminRole string

// The roles of admins.
const (
	administrator AdminRole = "Administrator"
	plainUser     AdminRole = "User"
)

// Values lists the roles for the OpenAPI document.
func (AdminRole) Values() []string { return []string{string(administrator), string(plainUser)} }

// Client is v1's form of a client.
type Client struct {
	ID                        idmap.Ref[domain.ClientKind] `json:"id" doc:"Numeric ID of the client."`
	ClientName                string                       `json:"client_name" doc:"The client's name, unique within the partner."`
	CreatedDate               Time                         `json:"created_date" doc:"When the client was created."`
	UserCount                 int                          `json:"user_count" doc:"Number of active users."`
	InactiveUserCount         int                          `json:"inactive_user_count" doc:"Number of inactive users."`
	PhishingClickRateTotal    float64                      `json:"phishing_click_rate_total" doc:"Percentage of all simulated emails that were clicked, from 0 to 100."`
	PhishingClickRateLastYear float64                      `json:"phishing_click_rate_last_year" doc:"Percentage of simulated emails sent in the last 365 days that were clicked, from 0 to 100."`
	TrainingOnTrackRate       float64                      `json:"training_on_track_rate" doc:"Percentage of active users with no overdue courses, from 0 to 100."`
}

// CreatedClient is the response to creating a client.
type CreatedClient struct {
	ID         idmap.Ref[domain.ClientKind] `json:"id" doc:"Numeric ID of the client."`
	ClientName string                       `json:"client_name" doc:"The client's name."`
}

type getPartner struct{}

type listClients struct {
	Query struct {
		upTo50
		IDs *refList[domain.ClientKind] `query:"ids" doc:"Numeric IDs of the clients to return, at most 500, separated by commas or in repeated parameters. An empty value returns no clients."`
	}
}

type createClient struct {
	Body struct {
		CompanyName string `json:"company_name" validate:"filled,max=200,name" doc:"The client's name, unique within the partner."`
	}
}

// addClientRoutes adds the routes of the partner and of clients.
func (f *Facade) addClientRoutes() {
	addCall[getPartner](f, Meta{
		ID: "partner", Method: "GET", Path: "/partner", Status: http.StatusOK, Summary: "Get Partner",
		Description: "Returns the partner that the API key belongs to, with the admins who have access to all its clients.",
		Fails:       []int{http.StatusBadRequest},
	}, api.GetPartner, nil, toPartner, nil)
	addList(f, Meta{
		ID: "clients", Method: "GET", Path: "/clients", Status: http.StatusOK, Summary: "Get Clients",
		Description: "Returns the clients that the API key can access, in order of creation.",
	}, api.ListClients, fillListClients, toClient, nextListClients)
	addCall(f, Meta{
		ID: "create-client", Method: "POST", Path: "/clients", Status: http.StatusCreated, Summary: "Create Client",
		Description: "Creates a client for the API key's partner. The client starts with the foundational training program. Use " +
			"the ID in the response for later requests about the client.",
		Fails:  []int{http.StatusConflict, http.StatusRequestEntityTooLarge},
		Fields: map[string]string{"name": "company_name"},
	}, api.CreateClient, fillCreateClient, toCreatedClient, nil)
}

func toPartner(p *api.Partner) *Partner {
	out := &Partner{PartnerName: p.Name, CreatedDate: at(p.CreatedAt), Admins: make([]Admin, len(p.Admins))}
	for i, a := range p.Admins {
		out.Admins[i] = toAdmin(a)
	}
	return out
}

// toAdmin splits the name at its last space (decisions 5.12). Every role but the viewer's is an Administrator in v1.
func toAdmin(a api.Admin) Admin {
	first, last := a.Name, ""
	if i := strings.LastIndexByte(a.Name, ' '); i >= 0 {
		first, last = a.Name[:i], a.Name[i+1:]
	}
	role := administrator
	if a.Role == domain.ViewerRole {
		role = plainUser
	}
	return Admin{
		ID: uuidOf(a.ID), Email: a.Email, Role: role, FirstName: first, LastName: last, CreatedDate: at(a.CreatedAt),
	}
}

func fillListClients(in *listClients, out *api.ListClientsInput) {
	out.Query.IDs = in.Query.IDs.resolved()
	out.Query.Sort = "created_at"
}

// nextListClients returns the successor's input with only the ids that the key can access: the response must not
// disclose v2's id of another partner's client whose number the caller guessed. Without ids, or without a page, the
// input is unchanged. It returns nil if ids must be dropped and more pages follow: the accessible ids are then unknown.
func nextListClients(in *api.ListClientsInput, page *op.Page[api.Client]) any {
	ids := in.Query.IDs
	if ids == nil || page == nil {
		return in
	}
	distinct := map[domain.ClientID]bool{}
	for _, id := range ids.IDs {
		distinct[id] = true
	}
	if ids.Given == len(ids.IDs) && page.Total == len(distinct) { // all given ids exist and are accessible
		return in
	}
	if page.Page.HasMore {
		return nil
	}
	shown := map[domain.ClientID]bool{}
	for _, c := range page.Data {
		shown[c.ID] = true
	}
	reached := slices.DeleteFunc(slices.Clone(ids.IDs), func(id domain.ClientID) bool { return !shown[id] })
	next := *in
	next.Query.IDs = &op.IDList[domain.ClientKind]{IDs: reached}
	return &next
}

func toClient(c api.Client) Client {
	return Client{
		ID: idmap.RefTo(c.ID), ClientName: c.Name, CreatedDate: at(c.CreatedAt),
		UserCount: c.Users.Active, InactiveUserCount: c.Users.Inactive,
		PhishingClickRateTotal: c.Phishing.ClickRateTotal, PhishingClickRateLastYear: c.Phishing.ClickRate365d,
		TrainingOnTrackRate: c.Training.OnTrackRate,
	}
}

func fillCreateClient(in *createClient, out *api.CreateClientInput) {
	out.Body.Name = in.Body.CompanyName
}

func toCreatedClient(c *api.Client) *CreatedClient {
	return &CreatedClient{ID: idmap.RefTo(c.ID), ClientName: c.Name}
}
