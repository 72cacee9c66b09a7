package domain_test

import (
	"strings"
	"testing"

	"partnerapi/domain"
)

// keywords are words that give a role in a title, a department and an email.
var keywords = map[domain.Role][]string{
	domain.RoleFinance: {
		"finance", "financial", "accounting", "accountant", "accounts payable", "accounts receivable",
		"payroll", "controller", "bookkeeper", "treasury", "treasurer", "billing",
	},
	domain.RoleHR: {"hr", "human resources", "talent", "recruiter", "recruiting"},
	domain.RoleExecutive: {
		"president", "vp", "vice president", "director", "founder",
		"managing partner", "general partner", "senior partner", "business owner",
		"ceo", "cfo", "cto", "coo", "cio", "ciso", "chief happiness officer", "chief officer",
	},
	domain.RoleAdmin: {
		"sysadmin", "infrastructure", "devops", "helpdesk", "help desk",
		"system administrator", "systems administrator", "network administrator", "database administrator",
		"administrator of a database", "information security", "cyber security", "network security",
		"security and information",
	},
}

func TestEveryKeywordInEveryField(t *testing.T) {
	for want, words := range keywords {
		for _, word := range words {
			dotted := strings.ReplaceAll(word, " ", ".")
			for name, fields := range map[string][3]string{
				"title":              {word, "", ""},
				"title in capitals":  {strings.ToUpper(word), "", ""},
				"title among others": {"Our (" + word + "), Oslo", "", ""},
				"department":         {"Engineer", "The " + word + " floor", "jo@example.com"},
				"email":              {"Engineer", "Works", dotted + "@example.com"},
				"email with a tail":  {"", "", "our-" + dotted + "2@example.com"},
				"email in capitals":  {"", "", strings.ToUpper(dotted) + "@EXAMPLE.COM"},
			} {
				if got := domain.ClassifyRole(fields[0], fields[1], fields[2]); got != want {
					t.Errorf("%s %q: %s, want %s", name, fields, got, want)
				}
			}
			for name, fields := range map[string][3]string{
				"domain of the email": {"", "", "jo@" + dotted + ".com"},
				"inside longer words": {"x" + strings.ReplaceAll(word, " ", "x x") + "x", "", ""},
			} {
				if got := domain.ClassifyRole(fields[0], fields[1], fields[2]); got != domain.RoleStandard {
					t.Errorf("%s %q: %s, want standard", name, fields, got)
				}
			}
		}
	}
}

func TestClassifyRole(t *testing.T) {
	const (
		admin, executive, hr   = domain.RoleAdmin, domain.RoleExecutive, domain.RoleHR
		finance, standard      = domain.RoleFinance, domain.RoleStandard
		jo                     = "jo@example.com"
		combiningAcute, kelvin = "\u0301", "\u212a"
	)
	for _, c := range []struct {
		title, department, email string
		want                     domain.Role
	}{
		{"", "", "", standard},
		{"Engineer", "Works", jo, standard},
		{"Engineer", "Works", "not an address", standard},

		// The first field that speaks decides.
		{"Recruiter", "Finance", jo, hr},
		{"Payroll clerk", "Office of the CEO", jo, finance},
		{"Nurse", "Human Resources", "finance@example.com", hr},
		{"Nurse", "Ward 3", "finance@example.com", finance},
		{"IT manager", "Executive", "ceo@example.com", admin},

		// Within a field: c-level, finance, hr, executive, admin.
		{"Chief Financial Officer", "", jo, executive},
		{"Chief People and Culture Officer", "", jo, executive},
		{"CFO, Finance", "", jo, executive},
		{"Finance Director", "", jo, finance},
		{"Director of Payroll and HR", "", jo, finance},
		{"VP Human Resources", "", jo, hr},
		{"HR Systems Administrator", "", jo, hr},
		{"IT Director", "", jo, executive},
		{"Director of Infrastructure", "", jo, executive},
		{"Officer of the chief", "", jo, standard},
		{"Chief of staff", "", jo, standard},
		{"Police officer", "", jo, standard},
		{"C.E.O.", "", jo, standard},

		// Partner and owner are executives only as the whole title.
		{"Partner", "", jo, executive},
		{" *OWNER* ", "", jo, executive},
		{"Managing Partner", "", jo, executive},
		{"HR Business Partner", "", jo, hr},
		{"Business Partner", "", jo, standard},
		{"Product Owner", "", jo, standard},
		{"Co-Owner", "", jo, standard},
		{"Partners", "", jo, standard},
		{"Clerk", "Partner", jo, standard},
		{"Clerk", "", "owner@example.com", standard},

		// Security is a department, or goes with other words.
		{"Clerk", "Security", jo, admin},
		{"Clerk", "security.", jo, admin},
		{"Security", "", jo, standard},
		{"Security Guard", "Site Security", jo, standard},
		{"Clerk", "", "security@example.com", standard},
		{"Information and Cyber Security", "", jo, admin},
		{"Cyber-security analyst", "", jo, admin},
		{"Cybersecurity analyst", "", jo, standard},
		{"Network engineer", "", jo, standard},
		{"Administrator", "", jo, standard},
		{"Office Administrator", "", jo, standard},
		{"Administrator, Databases", "", jo, standard},
		{"Network & Systems Administrator", "", jo, admin},

		// People and it are common in names of addresses.
		{"People Partner", "", jo, hr},
		{"Clerk", "People", jo, hr},
		{"Clerk", "Peopleware", jo, standard},
		{"Clerk", "", "people@example.com", standard},
		{"Clerk", "IT", jo, admin},
		{"IT", "", jo, admin},
		{"I.T. lead", "", jo, standard},
		{"Clerk", "", "it@example.com", standard},
		{"Clerk", "", "it.support@example.com", standard},
		{"Kit maker", "Italy", jo, standard},

		// Only letters make words.
		{"hr2", "", jo, hr},
		{"_vp_", "", jo, executive},
		{"Help-Desk", "", jo, admin},
		{"Accounts/Payable", "", jo, finance},
		{"Accounts  \t Payable", "", jo, finance},
		{"Payable Accounts", "", jo, standard},
		{"Accounts and Payable", "", jo, standard},
		{"Sales，VP", "", jo, executive},
		{"ÜHR", "", jo, standard},
		{"hré", "", jo, standard},
		{"hr" + combiningAcute, "", jo, standard},
		{"Boo" + kelvin + "eeper", "", jo, standard},
		{"Boo" + kelvin + "keeper", "", jo, finance},
		{"\xff\xfevp\xff", "", jo, executive},
		{"財務 Director", "", jo, executive},

		// Only what is before the last @ of an email counts.
		{"", "", "hr@finance.example.com", hr},
		{"", "", `"jo@hr"@example.com`, hr},
		{"", "", "jo.vp@example.com", executive},
		{"", "", "devops", admin},
		{"", "", "@payroll.example.com", standard},
	} {
		if got := domain.ClassifyRole(c.title, c.department, c.email); got != c.want {
			t.Errorf("title %q, department %q, email %q: %s, want %s", c.title, c.department, c.email, got, c.want)
		}
	}
}

func TestEnumsListTheirValues(t *testing.T) {
	for _, c := range []struct {
		got  []string
		want string
	}{
		{domain.Role("").Values(), "admin executive hr finance standard"},
		{domain.Grade("").Values(), "A B C D F"},
		{domain.Severity("").Values(), "critical high medium low"},
		{domain.FactorKey("").Values(), "phishing_clicks attachments_opened credential_submissions phishing_reports " +
			"real_phish_reported courses_completed dormant_on_training password_breaches_active pii_breaches basic_breaches bounds"},
	} {
		if got := strings.Join(c.got, " "); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}
