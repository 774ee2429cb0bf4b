// What other frameworks call tools and methods.
import { nearestName } from '../../core/config/nearest-name.ts'
import type { HeddleError } from '../../core/errors/catalogue.ts'
import { linesOf, type SourcePlace } from '../../core/errors/places.ts'

/** What a thread knows that helps to fix a mistake. */
export interface FixFacts {
  /** DOMAINS_DIR. */
  domainsDirs: readonly string[]
  /** Names of the installed tools. */
  tools(): readonly string[]
  /** The methods that a plugin gets of a tool. */
  methodsOf(tool: string): readonly string[]
  /** The file of a plugin. */
  fileOf(plugin: string): string | undefined
}

export interface FixContext extends FixFacts {
  /** The line that has thrown the error, or waits for what has; undefined when no stack has one. */
  place: SourcePlace | undefined
}

/** Names that other frameworks have for a tool. */
const TOOLS: Readonly<Record<string, string>> = {
  ...{ database: 'db', pool: 'db', sql: 'db', prisma: 'db', knex: 'db' },
  ...{ bus: 'event_bus', events: 'event_bus', emitter: 'event_bus', queue: 'event_bus', pubsub: 'event_bus' },
  ...{ app: 'http', router: 'http', server: 'http', web: 'http', express: 'http' },
  ...{ cache: 'state', redis: 'state', kv: 'state', store: 'state' },
  ...{ log: 'logger', console: 'logger' },
  ...{ cron: 'scheduler', jobs: 'scheduler', timer: 'scheduler' },
  ...{ env: 'config', settings: 'config', environment: 'config' },
  ...{ jwt: 'auth', tokens: 'auth' },
  ...{ metrics: 'registry', tracing: 'telemetry' },
}

/** Names that other libraries have for a method of a tool. */
const METHODS: Readonly<Record<string, string>> = {
  ...{
    run: 'execute',
    exec: 'execute',
    insert: 'execute',
    all: 'query',
    select: 'query',
    one: 'queryOne',
    first: 'queryOne',
  },
  ...{
    emit: 'publish',
    send: 'publish',
    dispatch: 'publish',
    on: 'subscribe',
    listen: 'subscribe',
    addListener: 'subscribe',
  },
  ...{
    route: 'addEndpoint',
    add: 'addEndpoint',
    use: 'before',
    ws: 'addWebSocket',
    static: 'mountStatic',
    sse: 'addStream',
  },
  ...{ log: 'info', warning: 'warn', warn: 'warning', schedule: 'cron', setInterval: 'every' },
}

/** Without a short form. */
const VERBS = ['head', 'options']
const RESPONSE = /^(?:res|response|reply|resp|c|ctx|context)$/
const RESPONSE_METHODS = [
  'json',
  'send',
  'status',
  'end',
  'sendStatus',
  'render',
  'type',
  'set',
  'header',
  'code',
  'write',
  'writeHead',
]

/** The fix of `object.method is not a function`. */
export function methodFix([, object, method]: RegExpExecArray, facts: FixContext): string | undefined {
  const tools = facts.tools()
  const tool =
    tools.find((name) => name === object || name.replace('_', '') === object!.toLowerCase()) ?? TOOLS[object!]
  if (tool !== undefined && tools.includes(tool)) {
    const methods = facts.methodsOf(tool)
    if (tool === 'http' && VERBS.includes(method!)) {
      return `write http.addEndpoint('/path', '${method!.toUpperCase()}', handler).`
    }
    const other = METHODS[method!]
    const meant = other !== undefined && methods.includes(other) ? other : nearestName(method!, methods)
    return `${meant === undefined ? '' : `did you mean ${tool}.${meant}? `}${tool} has ${methods.join(', ')}.`
  }
  if (RESPONSE.test(object!) && RESPONSE_METHODS.includes(method!))
    return 'return the answer: return { success: true, data }; context.setStatus(201) sets its status.'
  return undefined
}

/** The fix of an error of the runtime about tools. */
export function toolFix({ code, message }: HeddleError, facts: FixContext): string | undefined {
  if (code !== 'TOOL_MISSING' || !message.startsWith('Missing tool: ')) return undefined
  const name = message.slice(message.lastIndexOf(' ') + 1)
  const tools = facts.tools()
  const installed = `Installed: ${[...tools].sort().join(', ')}.`
  const owners = tools.filter((tool) => facts.methodsOf(tool).includes(name))
  const taken = oneTool(facts.place?.file)
  const owner = owners.find((tool) => tool === taken) ?? owners[0]
  if (owner !== undefined && taken !== undefined)
    return `the tools come in one object: plugin(({ ${owner} }) => …), or constructor({ ${owner} }: Tools). ${installed}`
  const other = TOOLS[name]
  const meant = other !== undefined && tools.includes(other) ? other : nearestName(name, tools)
  return `${meant === undefined ? '' : `did you mean ${meant}? `}${installed}`
}

/** The name that its function, or its constructor, has where the braces should be. */
function oneTool(file: string | undefined): string | undefined {
  const text = file === undefined ? '' : linesOf(file).join('\n')
  return /\b(?:constructor\s*\(|plugin\(\s*(?:async\b)?\s*\(?)\s*(\w+)/.exec(text)?.[1]
}
