/** What Node, its libraries and the system read: a lane's `process.env` has these, and what `LANE_ENV` adds. */
const KEPT = `
  PATH HOME USER LOGNAME SHELL PWD HOSTNAME LANG LANGUAGE LC_* TZ TMPDIR TEMP TMP TERM COLORTERM NO_COLOR FORCE_COLOR
  NODE_ENV NODE_OPTIONS NODE_PATH NODE_DEBUG NODE_NO_WARNINGS NODE_EXTRA_CA_CERTS NODE_TLS_REJECT_UNAUTHORIZED
  NODE_V8_COVERAGE NODE_APP_INSTANCE UV_THREADPOOL_SIZE TSX_* ESBUILD_* SSL_CERT_FILE SSL_CERT_DIR
  HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy
  SystemRoot ComSpec PATHEXT USERPROFILE APPDATA LOCALAPPDATA
`
/** The guardian knows by it what a lane has started. */
const RUN = 'HEDDLE_RUN'

/**
 * The environment of a lane. All plugins of a thread share one `process.env`, so it has what no plugin needs to hide from another: a plugin
 * gets its own variables from the tool `config`.
 * @param variables the variables of the process, without the secrets of the runtime
 * @param added names beside the kept ones; a `*` at the end stands for any rest
 */
export function laneEnvironment(
  variables: Readonly<Record<string, string>>,
  added: readonly string[],
): Record<string, string> {
  const patterns = [...KEPT.trim().split(/\s+/), RUN, ...added]
  const isKept = (name: string): boolean =>
    patterns.some((pattern) => (pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern))
  return Object.fromEntries(Object.entries(variables).filter(([name]) => isKept(name)))
}
