-- +goose Up
-- locks: courses, ROW EXCLUSIVE, a moment
-- Titles of the service's own courses in Spanish and Canadian French, in which their certificates and emails named them
-- in English. Courses that an import has renamed, or given titles or other languages, stay as they are. The English
-- titles are included because an import takes a course's languages from its titles. The release before reads all of them.

INSERT INTO courses (id, title, titles, created_at)
SELECT c.id, c.title, jsonb_build_object('en', c.title, 'es', t.es, 'fr-ca', t.fr), c.created_at
FROM courses AS c
JOIN (VALUES
    ('Security awareness foundations', 'Fundamentos de concienciación en seguridad', 'Notions de base en sensibilisation à la sécurité'),
    ('Recognizing phishing', 'Reconocer el phishing', 'Reconnaître l’hameçonnage'),
    ('Passwords and multi-factor authentication', 'Contraseñas y autenticación multifactor', 'Mots de passe et authentification multifacteur'),
    ('Safe browsing and downloads', 'Navegación y descargas seguras', 'Navigation et téléchargements sécuritaires'),
    ('Working securely away from the office', 'Trabajar con seguridad fuera de la oficina', 'Travailler en toute sécurité hors du bureau'),
    ('Reporting an incident', 'Notificar un incidente', 'Signaler un incident'),
    ('Handling health information', 'Tratamiento de la información de salud', 'Traitement des renseignements sur la santé'),
    ('Handling cardholder data', 'Tratamiento de los datos de titulares de tarjetas', 'Traitement des données de titulaires de carte'),
    ('Privacy and personal data', 'Privacidad y datos personales', 'Vie privée et renseignements personnels'),
    ('Wire fraud and payment approval', 'Fraude en transferencias y aprobación de pagos', 'Fraude par virement et approbation des paiements'),
    ('Protecting employee records', 'Proteger los expedientes de los empleados', 'Protéger les dossiers des employés'),
    ('Threats to executives', 'Amenazas a la alta dirección', 'Menaces visant la haute direction'),
    ('Administering systems securely', 'Administrar sistemas de forma segura', 'Administrer les systèmes de façon sécuritaire')
) AS t (title, es, fr) ON t.title = c.title
WHERE c.id BETWEEN '019b7740-0000-7000-8000-000000000001' AND '019b7740-0000-7000-8000-00000000000d'
    AND c.titles = '{}' AND c.languages = '{en,es,fr-ca}'
ON CONFLICT (id) DO UPDATE SET titles = excluded.titles;
