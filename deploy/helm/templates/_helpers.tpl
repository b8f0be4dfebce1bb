{{- define "oneclaw.name" -}}
{{- if contains "oneclaw" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-oneclaw" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "oneclaw.selector" -}}
app.kubernetes.io/name: oneclaw
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "oneclaw.labels" -}}
{{ include "oneclaw.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* Values that do not go together are refused with a sentence. */}}
{{- define "oneclaw.check" -}}
{{- if not .Values.store }}{{ fail "store is empty: give the address of a database (postgres://…), or take values-single.yaml" }}{{ end }}
{{- if eq .Values.store "bolt" }}
{{- if gt (int .Values.replicas) 1 }}{{ fail "store bolt is a file that one process opens: set replicas to 1, or give the address of a database" }}{{ end }}
{{- if not .Values.persistence.enabled }}{{ fail "store bolt needs a volume, or every restart forgets everything: set persistence.enabled" }}{{ end }}
{{- else }}
{{- if and .Values.persistence.enabled (gt (int .Values.replicas) 1) }}{{ fail "persistence is for one replica: several keep everything in the database" }}{{ end }}
{{- if not (has "ONECLAW_SECRET_KEY" .Values.secret.variables) }}{{ fail "secret.variables lacks ONECLAW_SECRET_KEY: replicas that share a database need the same key" }}{{ end }}
{{- end }}
{{- if and .Values.ingress.enabled (not .Values.publicURL) }}{{ fail "the ingress needs publicURL, whose host it answers for" }}{{ end }}
{{- range $name, $ := .Values.settings }}
{{- if regexMatch "(TOKEN|PASSWORD|API_KEY|SECRET|SECRET_KEY)$" $name }}{{ fail (printf "settings.%s would stand in the clear: put it into the secret and into secret.variables" $name) }}{{ end }}
{{- end }}
{{- end }}
