import type { Settings } from '../../core/config/schema.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { addressFault } from './address.ts'
import { chooseLibrary } from './library-choice.ts'
import { listenFault } from './listen-fault.ts'

/**
 * For the first of several processes, before anything starts: can they share the port, and does nobody else listen on it? A port that is shared
 * tells nobody that a stranger shares it, too.
 * @throws HTTP_LISTEN
 */
export async function requireSharablePort(
  settings: Pick<Settings, 'httpHost' | 'httpPort' | 'httpListener' | 'httpReusePort'>,
): Promise<void> {
  const { httpHost, httpPort, httpListener, httpReusePort } = settings
  const { library } = await chooseLibrary(httpListener)
  if (library.name === 'node:http' && !canNodeShare()) {
    throw new HeddleError(
      'HTTP_LISTEN',
      `node:http cannot share a port on Node ${process.versions.node}: PROCESSES needs Node 22.12, or uWebSockets.js`,
    )
  }
  // Another supervisor shares it on purpose.
  if (httpReusePort || (await addressFault(httpHost, httpPort)) === undefined) return
  const fault = await listenFault(httpHost, httpPort, 'HTTP')
  throw new HeddleError('HTTP_LISTEN', `Cannot listen on ${httpHost}:${httpPort}: ${fault}`)
}

/** Node has `reusePort` from 22.12 and 23.1 on. */
function canNodeShare(): boolean {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  return major > 23 || (major === 23 && minor >= 1) || (major === 22 && minor >= 12)
}
