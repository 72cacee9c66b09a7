package v1compat

import (
	"net/http"
	"strings"

	"partnerapi/domain"
	"partnerapi/idmap"
	v2 "partnerapi/v2"
	"partnerapi/v2/op"
)

// Partner is a partner as v1 shows it.
type Partner struct {
	PartnerName string  `json:"partner_name"`
	CreatedDate Time    `json:"created_date"`
	Admins      []Admin `json:"admins"`
}

// Admin is a dashboard admin as v1 shows it.
type Admin struct {
	ID          UUID[domain.AdminKind] `json:"id"`
	Email       string                 `json:"email"`
	Role        AdminRole              `json:"role"`
	FirstName   string                 `json:"first_name"`
	LastName    string                 `json:"last_name"`
	CreatedDate Time                   `json:"created_date"`
}

// AdminRole is v1's coarser view of what an admin may do.
type AdminRole string

// The roles of admins.
const (
	administrator AdminRole = "Administrator"
	plainUser     AdminRole = "User"
)

// Values lists the roles.
func (AdminRole) Values() []string { return []string{string(administrator), string(plainUser)} }

// Client is a client as v1 shows it.
type Client struct {
	ID                        idmap.Ref[domain.ClientKind] `json:"id"`
	ClientName                string                       `json:"client_name"`
	CreatedDate               Time                         `json:"created_date"`
	UserCount                 int                          `json:"user_count" doc:"Active users."`
	InactiveUserCount         int                          `json:"inactive_user_count"`
	PhishingClickRateTotal    float64                      `json:"phishing_click_rate_total"`
	PhishingClickRateLastYear float64                      `json:"phishing_click_rate_last_year"`
	TrainingOnTrackRate       float64                      `json:"training_on_track_rate"`
}

// CreatedClient is what creating a client answers.
type CreatedClient struct {
	ID         idmap.Ref[domain.ClientKind] `json:"id"`
	ClientName string                       `json:"client_name"`
}

type getPartner struct{}

type listClients struct {
	Query struct {
		upTo50
		IDs *refList[domain.ClientKind] `query:"ids" doc:"Ids of the clients to return, comma-separated or repeated."`
	}
}

type createClient struct {
	Body struct {
		CompanyName string `json:"company_name" validate:"filled,max=200,name"`
	}
}

func (f *Facade) clientRoutes(api *v2.API) {
	call(f, Meta{
		ID: "partner", Method: "GET", Path: "/partner", Status: http.StatusOK, Summary: "Get Partner",
		Fails: []int{http.StatusBadRequest},
	}, api.GetPartner, fromGetPartner, toPartner)
	list(f, Meta{
		ID: "clients", Method: "GET", Path: "/clients", Status: http.StatusOK, Summary: "Get Clients",
	}, api.ListClients, fromListClients, toClient)
	call(f, Meta{
		ID: "create-client", Method: "POST", Path: "/clients", Status: http.StatusCreated, Summary: "Create Client",
		Fails:  []int{http.StatusConflict, http.StatusRequestEntityTooLarge},
		Fields: map[string]string{"name": "company_name"},
	}, api.CreateClient, fromCreateClient, toCreatedClient)
}

func fromGetPartner(*getPartner) *v2.GetPartner { return &v2.GetPartner{} }

func toPartner(p *v2.Partner) *Partner {
	out := &Partner{PartnerName: p.Name, CreatedDate: at(p.CreatedAt), Admins: make([]Admin, len(p.Admins))}
	for i, a := range p.Admins {
		out.Admins[i] = toAdmin(a)
	}
	return out
}

// toAdmin splits the name at its last space (decisions 5.12).
func toAdmin(a v2.Admin) Admin {
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

func fromListClients(in *listClients) (*v2.ListClients, *op.Paging) {
	out := &v2.ListClients{}
	out.Query.IDs = in.Query.IDs.resolved()
	out.Query.Sort = "created_at"
	return out, &out.Query.Paging
}

func toClient(c v2.Client) Client {
	return Client{
		ID: idmap.RefTo(c.ID), ClientName: c.Name, CreatedDate: at(c.CreatedAt),
		UserCount: c.Users.Active, InactiveUserCount: c.Users.Inactive,
		PhishingClickRateTotal: c.ClickRateTotal, PhishingClickRateLastYear: c.ClickRateYear,
		TrainingOnTrackRate: c.Training.OnTrackRate,
	}
}

func fromCreateClient(in *createClient) *v2.CreateClient {
	out := &v2.CreateClient{}
	out.Body.Name = in.Body.CompanyName
	return out
}

func toCreatedClient(c *v2.Client) *CreatedClient {
	return &CreatedClient{ID: idmap.RefTo(c.ID), ClientName: c.Name}
}
