// The tool `http`.
import { realpathSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Owner } from '../../contracts/common.ts'
import type {
  AddRoute,
  FetchHandler,
  Handler,
  Hook,
  HookKind,
  Http,
  IdentityScheme,
  Method,
  MountOptions,
  Route,
  StreamHandler,
} from '../../contracts/http.ts'
import type { EndpointOptions, ThrownAnswers } from '../../contracts/http-request.ts'
import type { Tool, ToolRuntime } from '../../contracts/tool.ts'
import { HeddleError } from '../../core/errors/catalogue.ts'
import { codeOf } from '../../core/errors/description.ts'
import { callerPlace } from '../../core/errors/places.ts'
import { mountFault, optionFault, pathFault, schemesFault, throwsFault, unknownOption } from './options.ts'

/** Why a prefix is not valid, beyond the rules for every path; undefined when it is. */
function prefixFault(prefix: string): string | undefined {
  return /[:*%]/.test(prefix) ? "a prefix has no parameters, no '*' and no '%'" : undefined
}

/** The real path of a folder, or why it cannot be served. */
function realFolder(directory: unknown): { path: string; fault: string | undefined } {
  if (typeof directory !== 'string' && !(directory instanceof URL)) {
    return { path: '', fault: 'the folder must be a path or a file: URL' }
  }
  let wanted = String(directory)
  try {
    wanted = directory instanceof URL ? fileURLToPath(directory) : resolve(directory)
    const path = realpathSync(wanted)
    return { path, fault: statSync(path).isDirectory() ? undefined : `${wanted} is no folder` }
  } catch (error) {
    const isAbsent = codeOf(error) === 'ENOENT'
    return { path: '', fault: isAbsent ? `there is no folder ${wanted}` : `${wanted}: ${(error as Error).message}` }
  }
}

const METHODS: readonly Method[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS']

export default class HttpTool implements Tool {
  readonly name = 'http'
  #runtime: ToolRuntime

  constructor(runtime: ToolRuntime) {
    this.#runtime = runtime
  }

  api(owner: Owner): Http {
    const { host } = this.#runtime
    const hook = (
      kind: HookKind,
      run: unknown,
      throws?: ThrownAnswers,
      schemes?: readonly IdentityScheme[],
      // biome-ignore lint/suspicious/noExplicitAny: what hooks add is known to the types alone
    ): Http<any> => {
      if (typeof run !== 'function') throw new HeddleError('HTTP_HOOK_INVALID', `${kind} takes a function`)
      const fault = throwsFault(throws) ?? schemesFault(schemes)
      if (fault !== undefined) throw new HeddleError('HTTP_HOOK_INVALID', `${kind}: ${fault}`)
      host.addHook({ kind, owner, run: run as Hook['run'], throws, ...(schemes && { schemes }) })
      return this.#runtime.instrument(api)
    }
    const common = (path: string, method: Method, options: EndpointOptions = {}) => ({ owner, method, path, options })
    /** @param shown what stands before the path in an error. @param methodFault why the method is none */
    const add = (route: Route, shown: string, methodFault?: string): void => {
      const { kind, method, path, options } = route
      const codeFault = kind === 'socket' ? handlersFault(route.handlers) : handlerFault(route.handler)
      const optionsFault = optionFault(options, kind === 'endpoint' ? method : null)
      check(`${shown} ${show(path)}`, pathFault(path) ?? methodFault ?? codeFault ?? optionsFault)
      this.#warnOfOption(route)
      host.addRoute(route)
    }
    /** The short form of `addEndpoint` for one method. */
    const adds =
      (method: Method): AddRoute =>
      (path: string, ...[first, last]: unknown[]) => {
        const [options, handler] = last === undefined ? [undefined, first] : [first, last]
        if (typeof options === 'function')
          check(`${method} ${show(path)}`, 'the options, an object, stand before the handler: guards are one of them')
        api.addEndpoint(path, method, handler as Handler, options as EndpointOptions)
      }
    const api: Http = {
      ...{ get: adds('GET'), post: adds('POST'), put: adds('PUT'), patch: adds('PATCH'), delete: adds('DELETE') },
      identify: (resolve, { schemes } = {}) => hook('identify', resolve, undefined, schemes),
      before: (run, { throws } = {}) => hook('before', run, throws ?? run?.throws),
      after: (run) => hook('after', run),
      onError: (run) => hook('onError', run),
      addEndpoint: (path, method, handler, options) => {
        const upper = String(method).toUpperCase() as Method
        const fault = METHODS.includes(upper) ? undefined : `the method must be one of ${METHODS.join(', ')}`
        add({ kind: 'endpoint', ...common(path, upper, options), handler: handler as Handler }, upper, fault)
      },
      addStream: (path, handler, options) =>
        add({ kind: 'stream', ...common(path, 'GET', options), handler: handler as StreamHandler }, 'stream'),
      addWebSocket: (path, handlers, options) =>
        add({ kind: 'socket', ...common(path, 'GET', options), handlers }, 'socket'),
      mount: (prefix, code, given) => {
        const { stripPrefix = false, crossOrigin = false, ...options }: MountOptions = given ?? {}
        const own = { stripPrefix, crossOrigin }
        const shown = `mount under ${show(prefix)}`
        const handler = fetchHandler(code) as FetchHandler
        const codeFault = typeof handler === 'function' ? undefined : 'the handler must be a function, or have `fetch`'
        const fault = prefixFault(prefix) ?? codeFault ?? mountFault(options, own)
        check(shown, pathFault(prefix) ?? fault)
        host.mount({ owner, prefix: prefix.replace(/\/$/, ''), handler, options, ...own })
      },
      mountStatic: (prefix, directory) => {
        const folder = realFolder(directory)
        check(`folder under ${show(prefix)}`, pathFault(prefix) ?? prefixFault(prefix) ?? folder.fault)
        host.mountStatic({ owner, prefix: prefix.replace(/\/$/, ''), directory: folder.path })
      },
    }
    return api
  }

  /** In development: an option that does nothing was meant to do something. */
  #warnOfOption({ owner, method, path, options }: Route): void {
    const fault = this.#runtime.settings.nodeEnv === 'production' ? undefined : unknownOption(options)
    if (fault === undefined) return
    this.#runtime.log('WARNING', `${method} ${path} of ${owner.name} at ${callerPlace()}: ${fault}`, { stage: 'boot' })
  }
}

/** The function itself, or the one that an object has, as an application of Hono. */
function fetchHandler(code: unknown): unknown {
  const own = (code as { fetch?: unknown } | null | undefined)?.fetch
  return typeof code !== 'function' && typeof own === 'function' ? own.bind(code) : code
}

function handlerFault(handler: unknown): string | undefined {
  return typeof handler === 'function' ? undefined : 'the handler must be a function'
}

const SOCKET_HANDLERS = ['open', 'message', 'close'] as const

function handlersFault(handlers: unknown): string | undefined {
  if (typeof handlers !== 'object' || handlers === null) return 'the handlers must be an object'
  const given = handlers as Record<string, unknown>
  const bad = SOCKET_HANDLERS.find((key) => given[key] !== undefined && typeof given[key] !== 'function')
  if (bad !== undefined) return `${bad} must be a function`
  return SOCKET_HANDLERS.some((key) => given[key] !== undefined) ? undefined : 'there must be open, message or close'
}

function show(path: unknown): string {
  return typeof path === 'string' ? JSON.stringify(path) : `a path that is ${typeof path}`
}

function check(route: string, fault: string | undefined): void {
  if (fault !== undefined) throw new HeddleError('HTTP_PATH_INVALID', `${route}: ${fault}`)
}
