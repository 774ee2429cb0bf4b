import { CommandError } from '../../core/config/command-line.ts'
import { publicVariables } from '../../core/config/load.ts'
import { readVariable } from '../../core/config/plugin-variables.ts'
import type { Settings } from '../../core/config/schema.ts'
import { messageOf } from '../../core/errors/description.ts'
import { readText } from '../../preload/text-file.cjs'
import { pagesAddress } from '../../primary/logging/terminal.ts'
import { boot } from '../testing/boot.ts'

const PATH = '/system/client.ts'
const RUNNING_TIMEOUT_MS = 3_000

/** A client, and where it comes from. */
export interface FoundClient {
  text: string
  source: string
}

/** @throws CommandError when there is none, or the service wants a token */
export async function clientFrom(url: string, token: string | undefined, withSystem: boolean): Promise<FoundClient> {
  const asked = `${url.replace(/\/+$/, '')}${PATH}${withSystem ? '?system=true' : ''}`
  let response: Response
  try {
    const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
    response = await fetch(asked, { headers, signal: AbortSignal.timeout(RUNNING_TIMEOUT_MS) })
  } catch (error) {
    const { cause } = error as { cause?: unknown }
    throw new CommandError(`${asked} cannot be reached: ${messageOf(cause ?? error)}`)
  }
  if (response.status === 401) throw new CommandError(`${asked} wants a token: set SYSTEM_TOKEN or SYSTEM_READ_TOKEN`)
  const text = await response.text()
  if (!response.ok || !text.startsWith('// The client of ')) {
    throw new CommandError(`${asked} answered ${response.status}: is it heddle, and has it show-client.ts?`)
  }
  return { text, source: url }
}

/** Of the process that serves at the configured address; null when nothing does, or another application. */
export async function runningClient(settings: Settings, withSystem: boolean): Promise<FoundClient | null> {
  const { httpPort, systemPort = null, systemToken, systemReadToken } = settings
  if ((systemPort ?? httpPort) === 0) return null
  try {
    const address = pagesAddress(settings, httpPort, systemPort)
    const found = await clientFrom(address, systemReadToken ?? systemToken, withSystem)
    return found.text.startsWith(`// The client of ${titleOf()},`) ? found : null
  } catch (error) {
    if (error instanceof CommandError) return null
    throw error
  }
}

/**
 * Of a process that is booted for it: with the application's domains and variables, on an empty SQLite database and a free port, without jobs. It ends
 * when it has answered.
 * @throws CommandError when a plugin does not boot: its routes would be missing
 */
export async function bootedClient(settings: Settings, withSystem: boolean): Promise<FoundClient> {
  const env = {
    ...publicVariables(),
    HTTP_HOST: '127.0.0.1',
    HTTP_PORT: '0',
    SYSTEM_PORT: '',
    DATABASE_URL: '',
    REDIS_URL: '',
    TOOLS: [...(settings.tools === undefined ? [] : [settings.tools]), 'sqlite', 'memory-state'].join(','),
    EVENT_BUS_DRIVER: 'in_process',
    SCHEDULER_ENABLED: 'false',
    DB_AUTO_MIGRATE: 'true',
    OTEL_ENABLED: 'false',
    PROCESSES: '1',
  }
  // What the database of the process is called is for `boot` to say.
  const { SQLITE_PATH: _, LANES: __, LOG_FORMAT: ___, AUTH_SECRET_KEY: ____, ...own } = env as Record<string, string>
  try {
    await using app = await boot({ env: own })
    return { ...(await clientFrom(app.url, undefined, withSystem)), source: 'a process that was booted for it' }
  } catch (error) {
    throw error instanceof CommandError ? error : new CommandError(messageOf(error))
  }
}

/** As the documents of the process have it. */
function titleOf(): string {
  const title = readVariable('API_TITLE') ?? ''
  if (title !== '') return title
  try {
    return JSON.parse(readText('package.json')).name || 'service'
  } catch {
    // The process would be started in a folder without a package.json.
    return 'service'
  }
}
