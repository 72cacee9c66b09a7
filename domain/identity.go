package domain

// The identity of a service without a brand: pages, emails and reports use the same name and color.
const (
	// ServiceName is the name that the service's pages show, and their wordmark.
	ServiceName = "Partner API"
	// Accent is the one color of buttons, links and the icon, on white or with white text: their contrast is 7.6.
	Accent = "#3f3ccf"
	// AccentOnDark is the accent on a dark background, whose contrast to the pages' is 8.
	AccentOnDark = "#a9a7ff"
)
