{{/* Names of Services have at most 63 characters: 55 and a suffix. */}}
{{- define "partnerapi.name" -}}
{{- ternary .Release.Name (print .Release.Name "-" .Chart.Name) (contains .Chart.Name .Release.Name) | trunc 55 | trimSuffix "-" -}}
{{- end }}

{{/* The labels by which services and policies select pods. */}}
{{- define "partnerapi.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "partnerapi.labels" -}}
{{ include "partnerapi.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* The pod of a process, without its service account. It takes the root, the process, its secret, its flags and its probes. */}}
{{- define "partnerapi.pod" -}}
{{- $values := .root.Values }}
automountServiceAccountToken: false
# Otherwise, the Service partnerapi would set variables that begin with PARTNERAPI_.
enableServiceLinks: false
{{- with $values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
containers:
  - name: {{ .process }}
    image: "{{ $values.image.repository }}:{{ $values.image.tag | default .root.Chart.AppVersion }}"
    imagePullPolicy: {{ $values.image.pullPolicy }}
    args: {{ .args | toJson }}
    envFrom:
      - secretRef: {name: {{ .secret }}}
    env:
      {{- include "partnerapi.env" .root | nindent 6 }}
    {{- with .probes }}
    {{- . | nindent 4 }}
    {{- end }}
    resources:
      {{- toYaml (index $values .process).resources | nindent 6 }}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities: {drop: [ALL]}
    volumeMounts:
      - {name: data, mountPath: /data}
      - {name: tmp, mountPath: /tmp}
      {{- if $values.certificates }}
      - {name: certificates, mountPath: /certificates, readOnly: true}
      {{- end }}
volumes:
  - name: data
    {{- if $values.data.claim }}
    persistentVolumeClaim: {claimName: {{ $values.data.claim }}}
    {{- else }}
    emptyDir: {}
    {{- end }}
  - name: tmp
    emptyDir: {sizeLimit: 2Gi}
  {{- if $values.certificates }}
  - name: certificates
    secret: {secretName: {{ $values.certificates }}}
  {{- end }}
{{- range $field := list "nodeSelector" "tolerations" "affinity" }}
{{- with index $values $field }}
{{ $field }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{/* The variables of every process that are not secret. The program creates the folder in the volume, accessible only to itself. */}}
{{- define "partnerapi.env" -}}
{{- if not (or .Values.reportStore .Values.data.claim) }}
{{- fail "set reportStore or data.claim, because one pod creates a report and another one serves it" }}
{{- end }}
- {name: PARTNERAPI_DATA_DIR, value: /data/partnerapi}
- {name: PARTNERAPI_LISTEN, value: ":8080"}
- {name: PARTNERAPI_METRICS_LISTEN, value: ":8081"}
- {name: PARTNERAPI_WORK_LISTEN, value: ":8081"}
- {name: PARTNERAPI_LOG_FORMAT, value: json}
- {name: PARTNERAPI_DRAIN, value: {{ printf "%vs" .Values.serve.drain }}}
- {name: PARTNERAPI_RELEASE, value: {{ .Values.release | quote }}}
- {name: PARTNERAPI_PUBLIC_URL, value: {{ required "set publicURL to the URL at which callers reach the service" .Values.publicURL | quote }}}
{{- with .Values.trustedProxies }}
- {name: PARTNERAPI_TRUSTED_PROXIES, value: {{ join "," . | quote }}}
{{- end }}
{{- with .Values.reportStore }}
- {name: PARTNERAPI_REPORT_STORE, value: {{ . | quote }}}
{{- end }}
{{- range $name, $value := .Values.env }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- end }}

{{/* The probes of a process: it takes the name of the port. */}}
{{- define "partnerapi.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: {{ . }}}
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: {{ . }}}
  timeoutSeconds: 5
readinessProbe:
  httpGet: {path: /readyz, port: {{ . }}}
  periodSeconds: 5
  timeoutSeconds: 5
{{- end }}
