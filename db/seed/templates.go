package seed

import (
	"fmt"
	"html"
	"time"

	"partnerapi/domain"
)

// template is a simulated phishing mail: a short text and one link.
type template struct {
	id        domain.TemplateID
	name      string
	language  domain.Language
	category  string
	from      string
	subject   string
	message   string
	link      string // the words of the link
	address   string
	createdAt time.Time
}

func (t *template) html() string {
	return fmt.Sprintf(`<p>%s</p><p><a href="%s">%s</a></p>`, html.EscapeString(t.message), html.EscapeString(t.address), html.EscapeString(t.link))
}

func (t *template) text() string { return fmt.Sprintf("%s\n\n%s: %s\n", t.message, t.link, t.address) }

// templates lists the templates, four in each language. Their ids never
// change, so that a database has them once.
func templates() []template {
	list := []template{
		{name: "Mailbox almost full", language: domain.English, category: "it", from: "storage@mail-desk.example", subject: "Your mailbox is at 98 %",
			message: "New mail will bounce from tomorrow on unless you add space to your mailbox.", link: "Add space", address: "https://mail-desk.example/space"},
		{name: "Parcel held back", language: domain.English, category: "delivery", from: "depot@parcel-track.example", subject: "We could not deliver your parcel",
			message: "A small fee is open, and your parcel waits at our depot until it is paid.", link: "Pay and deliver", address: "https://parcel-track.example/fee"},
		{name: "New invoice", language: domain.English, category: "finance", from: "billing@ledger-online.example", subject: "Invoice 20418 is overdue",
			message: "Our records show that invoice 20418 has not been paid. Please look at it today.", link: "Open the invoice", address: "https://ledger-online.example/20418"},
		{name: "Holiday calendar", language: domain.English, category: "hr", from: "people@staff-notices.example", subject: "Changes to next year's holidays",
			message: "The calendar of holidays has changed. Check that your own plans still fit.", link: "See the calendar", address: "https://staff-notices.example/calendar"},
		{name: "Contraseña por caducar", language: domain.Spanish, category: "it", from: "soporte@mail-desk.example", subject: "Su contraseña caduca hoy",
			message: "Para no perder el acceso, confirme su contraseña antes del fin del día.", link: "Confirmar", address: "https://mail-desk.example/clave"},
		{name: "Paquete retenido", language: domain.Spanish, category: "delivery", from: "almacen@parcel-track.example", subject: "Su paquete está retenido",
			message: "Falta un dato de la dirección y su paquete espera en nuestro almacén.", link: "Completar la dirección", address: "https://parcel-track.example/direccion"},
		{name: "Factura pendiente", language: domain.Spanish, category: "finance", from: "cobros@ledger-online.example", subject: "Factura 3107 sin pagar",
			message: "La factura 3107 venció ayer. Revísela para evitar recargos.", link: "Ver la factura", address: "https://ledger-online.example/3107"},
		{name: "Encuesta interna", language: domain.Spanish, category: "hr", from: "personal@staff-notices.example", subject: "Encuesta del personal: último día",
			message: "Su opinión cuenta. La encuesta se cierra esta tarde.", link: "Responder", address: "https://staff-notices.example/encuesta"},
		{name: "Connexion inhabituelle", language: domain.French, category: "it", from: "securite@mail-desk.example", subject: "Connexion inhabituelle à votre compte",
			message: "Quelqu'un s'est connecté à votre compte depuis un nouvel appareil. Était-ce vous ?", link: "Vérifier", address: "https://mail-desk.example/verifier"},
		{name: "Colis en attente", language: domain.French, category: "delivery", from: "depot@parcel-track.example", subject: "Votre colis est en attente",
			message: "Des frais de douane restent à payer avant la livraison de votre colis.", link: "Régler les frais", address: "https://parcel-track.example/frais"},
		{name: "Dépôt refusé", language: domain.French, category: "finance", from: "paie@ledger-online.example", subject: "Votre dépôt de paie a été refusé",
			message: "Votre banque a refusé le dépôt. Mettez vos coordonnées à jour avant vendredi.", link: "Mettre à jour", address: "https://ledger-online.example/depot"},
		{name: "Nouvelle politique", language: domain.French, category: "hr", from: "rh@staff-notices.example", subject: "Politique de télétravail : à signer",
			message: "La nouvelle politique de télétravail entre en vigueur lundi. Votre signature manque encore.", link: "Lire et signer", address: "https://staff-notices.example/politique"},
	}
	d := newDice(catalogueStream, 0)
	for i := range list {
		list[i].createdAt = time.Date(2026, 1, 1, 0, i, 0, 0, time.UTC)
		list[i].id = newID[domain.TemplateKind](d, list[i].createdAt)
	}
	return list
}
