package seed

import "partnerapi/domain"

// demoClient is a client of the demonstration.
type demoClient struct {
	founding
	daysOld  int
	users    int
	showcase bool // has some of everything
}

// demoClients are those of the first partner, oldest first.
var demoClients = []demoClient{
	{founding{name: "Hollowbrook Manufacturing", industry: "Manufacturing", directory: domain.Microsoft, language: domain.English}, 1000, 120, true},
	{founding{name: "Fernhill Community Hospital", industry: "Healthcare", directory: domain.Microsoft, language: domain.English}, 970, 96, false},
	{founding{name: "Kestrel & Vane Legal", industry: "Legal", directory: domain.Google, language: domain.English}, 940, 74, false},
	{founding{name: "Énergie Boréale", industry: "Energy", directory: domain.Microsoft, language: domain.French}, 910, 61, false},
	{founding{name: "Hoteles Plaza Azul", industry: "Hospitality", directory: domain.Google, language: domain.Spanish}, 880, 55, false},
	{founding{name: "Tallgrass Credit Union", industry: "Finance", directory: domain.Microsoft, language: domain.English}, 850, 48, false},
	{founding{name: "Quarry Lane Schools", industry: "Education", directory: domain.Google, language: domain.English}, 820, 42, false},
	{founding{name: "Wexcombe Logistics", industry: "Transport", language: domain.English}, 790, 38, false},
	{founding{name: "Osprey Point Marina", industry: "Leisure", directory: domain.Microsoft, noDarkWeb: true, language: domain.English}, 760, 33, false},
	{founding{name: "Amberfield Dental Group", industry: "Healthcare", directory: domain.Microsoft, language: domain.English}, 730, 29, false},
	{founding{name: "Stonecrop Builders", industry: "Construction", directory: domain.Microsoft, language: domain.Spanish}, 700, 26, false},
	{founding{name: "Lantern Street Theatre", industry: "Arts", directory: domain.Google, language: domain.English}, 670, 24, false},
	{founding{name: "Merriweather Foods", industry: "Manufacturing", directory: domain.Microsoft, language: domain.English}, 640, 22, false},
	{founding{name: "Cobalt Ridge Mining Supply", industry: "Wholesale", directory: domain.Microsoft, language: domain.English}, 610, 20, false},
	{founding{name: "Atelier Fleuve", industry: "Design", directory: domain.Google, language: domain.French}, 580, 18, false},
	{founding{name: "Brackenridge Insurance Brokers", industry: "Insurance", directory: domain.Microsoft, language: domain.English}, 550, 17, false},
	{founding{name: "Pinwheel Childcare", industry: "Education", directory: domain.Google, language: domain.English}, 520, 15, false},
	{founding{name: "Garnet Valley Vineyards", industry: "Agriculture", directory: domain.Microsoft, language: domain.English}, 490, 14, false},
	{founding{name: "Redthorn Veterinary Clinic", industry: "Healthcare", directory: domain.Google, language: domain.English}, 460, 12, false},
	{founding{name: "Clínica Las Dunas", industry: "Healthcare", directory: domain.Microsoft, language: domain.Spanish}, 430, 11, false},
	{founding{name: "Sandpiper Realty", industry: "Real estate", directory: domain.Microsoft, language: domain.English}, 400, 10, false},
	{founding{name: "Ironbark Machine Works", industry: "Manufacturing", directory: domain.Microsoft, language: domain.English}, 370, 9, false},
	{founding{name: "Juniper Row Accountants", industry: "Finance", directory: domain.Google, language: domain.English}, 340, 8, false},
	{founding{name: "Whitecap Sailing School", industry: "Leisure", language: domain.English}, 310, 7, false},
	{founding{name: "Mossgate Print Shop", industry: "Printing", directory: domain.Google, language: domain.English}, 280, 6, false},
	{founding{name: "Larkspur Pharmacy", industry: "Retail", directory: domain.Microsoft, language: domain.English}, 250, 5, false},
	{founding{name: "Boulangerie Trois Ponts", industry: "Retail", language: domain.French}, 220, 4, false},
	{founding{name: "Harrow & Tine Gardens", industry: "Agriculture", language: domain.English}, 190, 4, false},
	{founding{name: "Copperleaf Consulting", directory: domain.Microsoft, language: domain.English}, 150, 3, false},
	{founding{name: "Duskwater Films", industry: "Media", directory: domain.Google, language: domain.English}, 110, 2, false},
	{founding{name: "Thistledown Tailors", industry: "Retail", language: domain.English}, 60, 1, false},
	{founding{name: "Sugar Gate Bakery", industry: "Retail", language: domain.English}, 10, 0, false},
}

// otherDemoClients are those of the second partner.
var otherDemoClients = []demoClient{
	{founding{name: "Saltmarsh Studio", industry: "Design", directory: domain.Google, language: domain.English}, 380, 14, false},
	{founding{name: "Driftwood Outfitters", industry: "Retail", directory: domain.Microsoft, language: domain.English}, 200, 6, false},
}
