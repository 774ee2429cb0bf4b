import { isLoopback } from './loopback.ts'
import type { Settings } from './schema.ts'

type Named = Pick<
  Settings,
  'systemToken' | 'systemReadToken' | 'systemPort' | 'nodeEnv' | 'httpTrustedProxies' | 'httpAllowedHosts'
>

/** In production behind a proxy, which brings the public to whatever address it is, nobody has said who may see `/system`. */
export function isSystemClosed(settings: Named): boolean {
  const { systemToken, systemReadToken, systemPort, nodeEnv, httpTrustedProxies, httpAllowedHosts } = settings
  const isOpen = systemToken === undefined && systemReadToken === undefined && systemPort === undefined
  const isBehindProxy = httpTrustedProxies?.length > 0 || httpAllowedHosts?.some((host) => !isLoopback(host))
  return isOpen && nodeEnv === 'production' && isBehindProxy
}
