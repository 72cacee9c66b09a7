package seed

import (
	"strconv"
	"strings"
	"unicode"

	"partnerapi/domain"
)

// The names of Spanish and French speakers.
var (
	spanishFirst = []string{"Alba", "Álvaro", "Belén", "Camila", "Diego", "Elena", "Íñigo", "Javier", "Lucía",
		"Mateo", "Núria", "Óscar", "Pilar", "Rocío", "Sofía", "Tomás"}
	spanishLast = []string{"Acuña", "Benítez", "Castañeda", "Domínguez", "Echeverría", "Figueroa", "Galindo",
		"Ibáñez", "Marín", "Ordóñez", "Peña", "Quintana", "Rosales", "Villanueva"}
	frenchFirst = []string{"Amélie", "Benoît", "Chloé", "Denis", "Élise", "Félix", "Gaëlle", "Hélène",
		"Jérôme", "Léa", "Mathéo", "Noémie", "Océane", "Raphaël", "Simon", "Zoé"}
	frenchLast = []string{"Beaulieu", "Côté", "Desrosiers", "Fréchette", "Gagné", "Hébert", "Lachance",
		"Lévesque", "Marchand", "Ouellet", "Paradis", "Séguin", "Thériault", "Vallée"}
)

// unaccented replaces accented letters, for names in email addresses.
var unaccented = strings.NewReplacer("á", "a", "é", "e", "í", "i", "ó", "o", "ú", "u", "ñ", "n", "ô", "o",
	"î", "i", "è", "e", "ê", "e", "ë", "e", "ï", "i", "ç", "c")

// job is a user's department and title, from which the role is classified.
type job struct{ department, title string }

// jobs are common jobs, which are classified as RoleStandard. specialJobs are jobs by the role as which they are
// classified.
var (
	jobs = []job{
		{"Operations", "Production planner"}, {"Operations", "Shift lead"}, {"Operations", "Warehouse clerk"},
		{"Sales", "Account manager"}, {"Sales", "Sales representative"}, {"Marketing", "Content editor"},
		{"Customer care", "Support agent"}, {"Customer care", "Team lead"}, {"Engineering", "Mechanical engineer"},
		{"Engineering", "Quality inspector"}, {"Legal", "Paralegal"}, {"Reception", "Front desk"}, {"Purchasing", "Buyer"},
	}
	specialJobs = map[domain.Role][]job{
		domain.RoleAdmin: {{"IT", "Systems administrator"}, {"IT", "Helpdesk technician"},
			{"Infrastructure", "Network administrator"}},
		domain.RoleExecutive: {{"Management", "Chief Executive Officer"}, {"Management", "Vice President"},
			{"Operations", "Director"}},
		domain.RoleHR:       {{"People", "Recruiter"}, {"Human Resources", "HR partner"}},
		domain.RoleFinance:  {{"Finance", "Accountant"}, {"Finance", "Payroll clerk"}, {"Accounts payable", "Controller"}},
		domain.RoleStandard: {{"Operations", "Coordinator"}},
	}
)

// name returns a random name of a speaker of a language.
func (d *random) name(language domain.Language) (first, last string) {
	switch language {
	case domain.Spanish:
		return oneOf(d, spanishFirst), oneOf(d, spanishLast)
	case domain.French:
		return oneOf(d, frenchFirst), oneOf(d, frenchLast)
	default:
		return d.fake.FirstName(), d.fake.LastName()
	}
}

// job returns a random job. One of eight is a job of a special role.
func (d *random) job() job {
	if !d.chance(0.125) {
		return oneOf(d, jobs)
	}
	roles := []domain.Role{domain.RoleAdmin, domain.RoleExecutive, domain.RoleHR, domain.RoleFinance, domain.RoleFinance}
	return oneOf(d, specialJobs[oneOf(d, roles)])
}

// slug converts a name to a part of an address: lower-case letters, digits and hyphens.
func slug(name string) string {
	var b strings.Builder
	for _, r := range unaccented.Replace(strings.ToLower(name)) {
		switch {
		case r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)):
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	return strings.TrimSuffix(b.String(), "-")
}

// emailAllocator creates unique email addresses for the users of a client.
type emailAllocator struct {
	domain string
	taken  map[string]int // the number of addresses with a local part, before numbers were appended
}

// newEmail returns the next address for a name.
func (a *emailAllocator) newEmail(first, last string) string {
	local := slug(first) + "." + slug(last)
	a.taken[local]++
	if n := a.taken[local]; n > 1 {
		local += strconv.Itoa(n)
	}
	return local + "@" + a.domain
}
