package config

import (
	"fmt"

	"partnerapi/domain"
)

// MailDomainsFlag names the domains that senders' addresses may have.
type MailDomainsFlag struct {
	MailDomains []string `name:"mail-domains" placeholder:"DOMAIN,…" help:"Domains allowed in brands' sender addresses, such as mail.example.com. The mail server must be authorized to send for each domain (SPF, DKIM). If omitted, brands cannot have a sender address."`
}

// Domains returns the domains. The error names the flag.
func (f MailDomainsFlag) Domains() (domain.MailDomains, error) {
	domains, err := domain.ParseMailDomains(f.MailDomains)
	if err != nil {
		return nil, fmt.Errorf("--mail-domains: %w", err)
	}
	return domains, nil
}
