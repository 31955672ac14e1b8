{{- /* The name of all objects of a release: its name, and the chart's if the release does not contain it. */ -}}
{{- define "spanscore.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "spanscore.collector" -}}
{{- .Values.collector.fullnameOverride | default (printf "%s-collector" (include "spanscore.fullname" .)) -}}
{{- end }}

{{- /* Labels that select pods. Takes a dictionary of `root` and `component`. */ -}}
{{- define "spanscore.selector" -}}
app.kubernetes.io/name: spanscore
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "spanscore.labels" -}}
app.kubernetes.io/name: spanscore
app.kubernetes.io/part-of: spanscore
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end }}

{{- define "spanscore.image" -}}
{{ required "image.repository is missing: the image is not published; build and push it (deploy/README.md)" .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- /* The port of an endpoint, `HOST:PORT`. */ -}}
{{- define "spanscore.port" -}}
{{ regexFind ":[0-9]+$" . | required (printf "the endpoint %s has no port: HOST:PORT" .) | trimPrefix ":" }}
{{- end }}

{{- /* The port of metrics and health, which every probe needs. Takes a configuration. */ -}}
{{- define "spanscore.metricsPort" -}}
{{- $prometheus := dig "exporters" "prometheus" dict . | default dict -}}
{{- include "spanscore.port" (required "config.exporters.prometheus.endpoint is missing: probes and Prometheus ask its port" $prometheus.endpoint) -}}
{{- end }}

{{- /* The ports of the OTLP receivers by name, as JSON. Takes a configuration. */ -}}
{{- define "spanscore.receiving" -}}
{{- $ports := dict -}}
{{- range $protocol, $settings := (dig "receivers" "otlp" "protocols" dict .) | default dict -}}
{{- if $settings }}{{- $_ := set $ports (printf "otlp-%s" $protocol) (include "spanscore.port" $settings.endpoint | int) -}}{{- end -}}
{{- end -}}
{{- toJson $ports -}}
{{- end }}

{{- define "spanscore.grpcPort" -}}
{{ index (include "spanscore.receiving" .Values.config | fromJson) "otlp-grpc" }}
{{- end }}

{{- /* Bytes of a quantity of Kubernetes, such as 2Gi, or of a size of spanscore, such as 1GiB. */ -}}
{{- define "spanscore.bytes" -}}
{{- $units := dict "" 1 "k" 1e3 "K" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 -}}
{{- $unit := regexFind "[a-zA-Z]*$" (toString .) | trimSuffix "B" -}}
{{- if not (hasKey $units $unit) }}{{ fail (printf "%v is not a size such as 512Mi" .) }}{{ end -}}
{{- mulf (regexFind "^[0-9.]+([eE][+]?[0-9]+)?" (toString .) | float64) (get $units $unit) | int64 -}}
{{- end }}

{{- /* Fails if a volume is smaller than the storage in it. Takes a list: both keys, the configuration, the volume. */ -}}
{{- define "spanscore.fits" -}}
{{- $most := dig "storage" "max_size" "1GiB" (index . 2) -}}
{{- if and (regexMatch "^[0-9]" $most) (lt (include "spanscore.bytes" (index . 3) | int64) (include "spanscore.bytes" $most | int64)) -}}
{{- fail (printf "%s is %v, less than %s, which is %s: the volume would be full before spans are refused" (index . 1) (index . 3) (index . 0) $most) -}}
{{- end -}}
{{- end }}

{{- /* Whether spanscore takes gRPC with TLS: not empty if so. */ -}}
{{- define "spanscore.tls" -}}
{{- if dig "receivers" "otlp" "protocols" "grpc" "tls" false .Values.config }}true{{ end -}}
{{- end }}

{{- define "spanscore.noRights" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}
