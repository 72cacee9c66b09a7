package phishing

import (
	"bytes"
	"embed"
	"html/template"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"partnerapi/domain"
	"partnerapi/platform/mail"
)

//go:embed pages/pages.tmpl
var pageFiles embed.FS

var pageTemplates = template.Must(template.ParseFS(pageFiles, "pages/pages.tmpl"))

// words are what the pages say in one language.
type words struct {
	Titles map[string]string // by page
	Bodies map[string]string // of the pages that are a note only

	Account, Password, SignIn                 string
	Simulated, Sender, Subject, Clues, Advice string

	Indicators map[domain.Indicator]string
}

// page is what a page shows.
type page struct {
	Lang, Title   string
	Body          string // of a note
	Words         words
	From, Subject string
	Clues         []string
}

// write writes a page in the language of the mail's reader.
func (p *Pages) write(c *gin.Context, status int, name string, s domain.Simulation) {
	language := s.Language
	if _, known := allWords[language]; !known {
		language = domain.English
	}
	w := allWords[language]
	shown := page{Lang: language.Tag(), Title: w.Titles[name], Body: w.Bodies[name], Words: w}
	layout := name
	switch {
	case shown.Body != "":
		layout = "note"
	case name == "lesson":
		values := placeholders(s, "", p.db.Now())
		shown.Subject = fill(s.Template.Subject, values, mail.OneLine)
		if from, err := sender(s.Template, values); err == nil {
			shown.From = strings.TrimSpace(from.Name + " <" + from.Address + ">")
		}
		for _, i := range (domain.Indicator("")).Values() {
			if slices.Contains(s.Template.Indicators, domain.Indicator(i)) {
				shown.Clues = append(shown.Clues, w.Indicators[domain.Indicator(i)])
			}
		}
	}
	private(c)
	var text bytes.Buffer
	if err := pageTemplates.ExecuteTemplate(&text, layout, shown); err != nil {
		p.log.ErrorContext(c.Request.Context(), "a page was not written", "page", name, "error", err)
	}
	c.Data(status, "text/html; charset=utf-8", text.Bytes())
}

var allWords = map[domain.Language]words{
	domain.English: {
		Titles: map[string]string{
			"form": "Sign in", "lesson": "This was a phishing simulation", "reported": "Well spotted!",
			"unknown": "This page does not exist", "trouble": "Please try again later",
		},
		Account: "Email", Password: "Password", SignIn: "Sign in",
		Simulated: "The message that brought you here was sent by your organization’s security training. Nothing has happened, and nothing that you may have typed was kept. A real attacker could now have your password or your device.",
		Sender:    "It claimed to come from", Subject: "Its subject was", Clues: "What gave it away",
		Advice: "Next time, stop before you click: look at the sender’s address and at where the link leads, ask the supposed sender in another way, and report what seems odd.",
		Bodies: map[string]string{
			"reported": "You reported a simulated phishing message. Reporting is the best thing that you can do: with a real one, you would have protected your colleagues too.",
			"unknown":  "The link is incomplete or was never valid.",
			"trouble":  "We could not show this page just now.",
		},
		Indicators: map[domain.Indicator]string{
			domain.FromOutside:    "It came from outside your organization, from an address that has nothing to do with whom it spoke for.",
			domain.FromColleagues: "It pretended to come from within your organization, but its address is not one of yours.",
			domain.FromAuthority:  "It used the name of someone in authority to keep you from asking.",
			domain.ForeignLink:    "Its link led to a web address that does not belong to the supposed sender.",
			domain.BadGrammar:     "It had errors of spelling and grammar that a real sender would not make.",
			domain.BorrowedLogo:   "Its logo and looks were copied; they prove nothing.",
			domain.Fear:           "It threatened you with a loss, and left little time to think.",
			domain.Duty:           "It appealed to your sense of duty to make you act at once.",
			domain.Greed:          "It promised you something for very little.",
			domain.Curiosity:      "It made you curious and told just enough that you would want to see more.",
			domain.OwnCompany:     "It named your organization, which anyone can look up.",
			domain.PublicNews:     "It leaned on something from the news to be believable.",
		},
	},
	domain.Spanish: {
		Titles: map[string]string{
			"form": "Iniciar sesión", "lesson": "Esto era una simulación de phishing", "reported": "¡Bien visto!",
			"unknown": "Esta página no existe", "trouble": "Inténtelo más tarde, por favor",
		},
		Account: "Correo electrónico", Password: "Contraseña", SignIn: "Iniciar sesión",
		Simulated: "El mensaje que le trajo aquí lo envió la formación en seguridad de su organización. No ha pasado nada y no se ha guardado nada de lo que haya podido escribir. Un atacante real podría tener ahora su contraseña o su equipo.",
		Sender:    "Decía venir de", Subject: "Su asunto era", Clues: "Lo que lo delataba",
		Advice: "La próxima vez, deténgase antes de hacer clic: mire la dirección del remitente y adónde lleva el enlace, pregunte al supuesto remitente por otra vía y denuncie lo que le parezca extraño.",
		Bodies: map[string]string{
			"reported": "Ha denunciado un mensaje de phishing simulado. Denunciar es lo mejor que puede hacer: con uno real, también habría protegido a sus compañeros.",
			"unknown":  "El enlace está incompleto o nunca fue válido.",
			"trouble":  "No hemos podido mostrar esta página en este momento.",
		},
		Indicators: map[domain.Indicator]string{
			domain.FromOutside:    "Venía de fuera de su organización, de una dirección que nada tiene que ver con quien decía ser.",
			domain.FromColleagues: "Fingía venir de su organización, pero la dirección no es de las suyas.",
			domain.FromAuthority:  "Usaba el nombre de alguien con autoridad para que usted no preguntara.",
			domain.ForeignLink:    "Su enlace llevaba a una dirección web que no pertenece al supuesto remitente.",
			domain.BadGrammar:     "Tenía faltas de ortografía y gramática que un remitente real no cometería.",
			domain.BorrowedLogo:   "Su logotipo y su aspecto eran copiados; no demuestran nada.",
			domain.Fear:           "Le amenazaba con una pérdida y dejaba poco tiempo para pensar.",
			domain.Duty:           "Apelaba a su sentido del deber para que actuara al instante.",
			domain.Greed:          "Le prometía algo a cambio de muy poco.",
			domain.Curiosity:      "Despertaba su curiosidad y contaba lo justo para que quisiera ver más.",
			domain.OwnCompany:     "Nombraba a su organización, algo que cualquiera puede averiguar.",
			domain.PublicNews:     "Se apoyaba en una noticia para resultar creíble.",
		},
	},
	domain.French: {
		Titles: map[string]string{
			"form": "Ouvrir une session", "lesson": "C’était une simulation d’hameçonnage", "reported": "Bien vu !",
			"unknown": "Cette page n’existe pas", "trouble": "Veuillez réessayer plus tard",
		},
		Account: "Courriel", Password: "Mot de passe", SignIn: "Ouvrir une session",
		Simulated: "Le message qui vous a mené ici a été envoyé par la formation en sécurité de votre organisation. Rien ne s’est passé, et rien de ce que vous avez pu écrire n’a été conservé. Un vrai pirate pourrait maintenant avoir votre mot de passe ou votre appareil.",
		Sender:    "Il prétendait venir de", Subject: "Son objet était", Clues: "Ce qui le trahissait",
		Advice: "La prochaine fois, arrêtez-vous avant de cliquer : regardez l’adresse de l’expéditeur et où mène le lien, demandez à l’expéditeur supposé par un autre moyen, et signalez ce qui semble étrange.",
		Bodies: map[string]string{
			"reported": "Vous avez signalé un message d’hameçonnage simulé. C’est ce que vous pouvez faire de mieux : avec un vrai, vous auriez aussi protégé vos collègues.",
			"unknown":  "Le lien est incomplet ou n’a jamais été valide.",
			"trouble":  "Nous n’avons pas pu afficher cette page pour l’instant.",
		},
		Indicators: map[domain.Indicator]string{
			domain.FromOutside:    "Il venait de l’extérieur de votre organisation, d’une adresse sans rapport avec celui qu’il disait être.",
			domain.FromColleagues: "Il feignait de venir de votre organisation, mais l’adresse n’est pas des vôtres.",
			domain.FromAuthority:  "Il usait du nom d’une personne en autorité pour vous empêcher de poser des questions.",
			domain.ForeignLink:    "Son lien menait à une adresse Web qui n’appartient pas à l’expéditeur supposé.",
			domain.BadGrammar:     "Il contenait des fautes qu’un véritable expéditeur ne ferait pas.",
			domain.BorrowedLogo:   "Son logo et son apparence étaient copiés ; ils ne prouvent rien.",
			domain.Fear:           "Il vous menaçait d’une perte et laissait peu de temps pour réfléchir.",
			domain.Duty:           "Il faisait appel à votre sens du devoir pour vous faire agir sur-le-champ.",
			domain.Greed:          "Il vous promettait quelque chose pour presque rien.",
			domain.Curiosity:      "Il piquait votre curiosité et en disait juste assez pour vous donner envie d’en voir plus.",
			domain.OwnCompany:     "Il nommait votre organisation, ce que n’importe qui peut trouver.",
			domain.PublicNews:     "Il s’appuyait sur l’actualité pour être crédible.",
		},
	},
}
