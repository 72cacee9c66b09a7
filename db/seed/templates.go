package seed

import "partnerapi/domain"

// template is one of the service's own templates of simulated mails, as far as
// results and sent mails show it.
type template struct {
	id            domain.TemplateID
	from, subject string
}
