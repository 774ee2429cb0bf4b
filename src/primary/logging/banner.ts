import type { Settings } from '../../core/config/schema.ts'
import { shown } from '../../core/errors/shown-path.ts'

export interface BannerOptions {
  settings: Pick<Settings, 'httpHost' | 'systemHost' | 'lanes' | 'domainsDir'>
  port: number
  /** Null when the pages have no port of their own. */
  systemPort: number | null
  /** Paths that are served. */
  paths: readonly string[]
  isDevelopment: boolean
}

/** Pages of the runtime for people; listed where they are served. */
const PAGES = [
  ['Dashboard', '/system/dashboard'],
  ['API', '/system/docs'],
] as const

/** Lines for a person who has started the process on a terminal: where to look next. */
export function banner({ settings, port, systemPort, paths, isDevelopment }: BannerOptions): string[] {
  const base = pagesAddress(settings, port, systemPort)
  const lines = PAGES.filter(([, path]) => paths.includes(path)).map(([name, path]) => line(name, base + path))
  if (!isDevelopment) return lines
  const folders = settings.domainsDir.map((folder) => shown(folder)).join(', ')
  const lanes = settings.lanes === 1 ? '1 lane' : `${settings.lanes} lanes`
  return [
    ...lines,
    line('Development', `what you change in ${folders} is live at once, in ${lanes}; each request is a line`),
  ]
}

/** Where the pages of the runtime are, without a path. */
export function pagesAddress(
  { httpHost, systemHost }: Pick<Settings, 'httpHost' | 'systemHost'>,
  port: number,
  systemPort: number | null,
): string {
  return `http://${reachable(systemPort === null ? httpHost : systemHost)}:${systemPort ?? port}`
}

function line(name: string, text: string): string {
  return `  ${name.padEnd(12)} ${text}`
}

/** An address that a browser can open. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') && !host.startsWith('[') ? `[${host}]` : host
}
