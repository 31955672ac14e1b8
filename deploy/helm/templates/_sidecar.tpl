{{- /*
For the pod of an agent in a chart that has this one as a dependency, with `spanscore: {mode: sidecar}` in its values:
  initContainers: {{- include "spanscore.sidecar" .Subcharts.spanscore | nindent 8 }}
  volumes: {{- include "spanscore.sidecar.volumes" .Subcharts.spanscore | nindent 8 }}
*/ -}}
{{- define "spanscore.sidecar" -}}
- name: spanscore
  image: {{ include "spanscore.image" . }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  # A sidecar starts before the agent and ends after it, so no span is lost.
  restartPolicy: Always
  args: [serve, --config, /etc/spanscore/spanscore.yaml]
  {{- with .Values.env }}
  env: {{- toYaml . | nindent 4 }}
  {{- end }}
  ports:
    # Not "metrics": the agent may have a port of this name.
    - {name: spanscore, containerPort: {{ include "spanscore.metricsPort" .Values.sidecar.config }}}
  startupProbe:
    httpGet: {path: /readyz, port: spanscore}
    periodSeconds: 1
    failureThreshold: 60
  livenessProbe:
    httpGet: {path: /livez, port: spanscore}
    periodSeconds: 10
    timeoutSeconds: 5
  readinessProbe:
    httpGet: {path: /readyz, port: spanscore}
    periodSeconds: 5
    timeoutSeconds: 3
  resources: {{- toYaml .Values.sidecar.resources | nindent 4 }}
  securityContext: {{- include "spanscore.noRights" . | nindent 4 }}
  volumeMounts:
    - {name: spanscore-config, mountPath: /etc/spanscore, readOnly: true}
    - {name: spanscore-state, mountPath: /var/lib/spanscore}
    {{- with .Values.extraVolumeMounts }}{{ toYaml . | nindent 4 }}{{ end }}
{{- end }}

{{- define "spanscore.sidecar.volumes" -}}
{{- include "spanscore.fits" (list "sidecar.config.storage.max_size" "sidecar.storageSize" .Values.sidecar.config .Values.sidecar.storageSize) -}}
- name: spanscore-config
  configMap: {name: {{ include "spanscore.fullname" . }}-config}
# The volume lives as long as the pod: a restarted container finds its spans, a moved pod does not.
- name: spanscore-state
  emptyDir: {sizeLimit: {{ .Values.sidecar.storageSize }}}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}
