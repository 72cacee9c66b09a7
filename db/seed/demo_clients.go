package seed

import "partnerapi/domain"

// demoClient is a client of the demonstration.
type demoClient struct {
	name, industry string
	directory      domain.Directory
	language       domain.Language
	daysOld, users int
	showcase       bool // has all kinds of data; see addShowcase
	noDarkWeb      bool
}

// demoClients are the clients of the first partner, the oldest first.
var demoClients = []demoClient{
	{"Hollowbrook Manufacturing", "Manufacturing", domain.Microsoft, domain.English, 1000, 120, true, false},
	{"Fernhill Community Hospital", "Healthcare", domain.Microsoft, domain.English, 970, 96, false, false},
	{"Kestrel & Vane Legal", "Legal", domain.Google, domain.English, 940, 74, false, false},
	{"Énergie Boréale", "Energy", domain.Microsoft, domain.French, 910, 61, false, false},
	{"Hoteles Plaza Azul", "Hospitality", domain.Google, domain.Spanish, 880, 55, false, false},
	{"Tallgrass Credit Union", "Finance", domain.Microsoft, domain.English, 850, 48, false, false},
	{"Quarry Lane Schools", "Education", domain.Google, domain.English, 820, 42, false, false},
	{"Wexcombe Logistics", "Transport", "", domain.English, 790, 38, false, false},
	{"Osprey Point Marina", "Leisure", domain.Microsoft, domain.English, 760, 33, false, true},
	{"Amberfield Dental Group", "Healthcare", domain.Microsoft, domain.English, 730, 29, false, false},
	{"Stonecrop Builders", "Construction", domain.Microsoft, domain.Spanish, 700, 26, false, false},
	{"Lantern Street Theatre", "Arts", domain.Google, domain.English, 670, 24, false, false},
	{"Merriweather Foods", "Manufacturing", domain.Microsoft, domain.English, 640, 22, false, false},
	{"Cobalt Ridge Mining Supply", "Wholesale", domain.Microsoft, domain.English, 610, 20, false, false},
	{"Atelier Fleuve", "Design", domain.Google, domain.French, 580, 18, false, false},
	{"Brackenridge Insurance Brokers", "Insurance", domain.Microsoft, domain.English, 550, 17, false, false},
	{"Pinwheel Childcare", "Education", domain.Google, domain.English, 520, 15, false, false},
	{"Garnet Valley Vineyards", "Agriculture", domain.Microsoft, domain.English, 490, 14, false, false},
	{"Redthorn Veterinary Clinic", "Healthcare", domain.Google, domain.English, 460, 12, false, false},
	{"Clínica Las Dunas", "Healthcare", domain.Microsoft, domain.Spanish, 430, 11, false, false},
	{"Sandpiper Realty", "Real estate", domain.Microsoft, domain.English, 400, 10, false, false},
	{"Ironbark Machine Works", "Manufacturing", domain.Microsoft, domain.English, 370, 9, false, false},
	{"Juniper Row Accountants", "Finance", domain.Google, domain.English, 340, 8, false, false},
	{"Whitecap Sailing School", "Leisure", "", domain.English, 310, 7, false, false},
	{"Mossgate Print Shop", "Printing", domain.Google, domain.English, 280, 6, false, false},
	{"Larkspur Pharmacy", "Retail", domain.Microsoft, domain.English, 250, 5, false, false},
	{"Boulangerie Trois Ponts", "Retail", "", domain.French, 220, 4, false, false},
	{"Harrow & Tine Gardens", "Agriculture", "", domain.English, 190, 4, false, false},
	{"Copperleaf Consulting", "", domain.Microsoft, domain.English, 150, 3, false, false},
	{"Duskwater Films", "Media", domain.Google, domain.English, 110, 2, false, false},
	{"Thistledown Tailors", "Retail", "", domain.English, 60, 1, false, false},
	{"Sugar Gate Bakery", "Retail", "", domain.English, 10, 0, false, false},
}

// otherDemoClients are the clients of the second partner.
var otherDemoClients = []demoClient{
	{"Saltmarsh Studio", "Design", domain.Google, domain.English, 380, 14, false, false},
	{"Driftwood Outfitters", "Retail", domain.Microsoft, domain.English, 200, 6, false, false},
}
