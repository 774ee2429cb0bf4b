import type { JsonSchema, RouteInfo } from '../../contracts/registry.ts'
import { Components, inOrder, OperationIds, PathNames, type SecurityScheme, SecuritySchemes } from './components.ts'
import { type Parameter, parametersOf, type RequestBody, requestBodyOf } from './parameters.ts'
import { FAILURE_SCHEMAS, type Response, responsesOf, sharedResponses } from './responses.ts'

export interface ApiInfo {
  title: string
  version: string
  description?: string
  contact?: { name?: string; url?: string; email?: string }
  license?: { name: string; url: string }
}

export interface Operation {
  operationId: string
  /** Else the words of the plugin's name. */
  summary: string
  description: string
  tags: string[]
  parameters?: Parameter[]
  requestBody?: RequestBody
  responses: Record<string, Response | { $ref: string }>
  /** Empty: everybody may call it. */
  security: Record<string, string[]>[]
  /** Where it is not that of the document. */
  servers?: { url: string }[]
  /** The plugin that answers, `<domain>.<ClassName>`. */
  'x-plugin': string
  /** The path as it was registered, `/users/:id`: its parameters are named as the handler and the typed client know them. */
  'x-route': string
}

/** Source: OpenAPI specification 3.1.0. */
export interface OpenApiDocument {
  openapi: '3.1.0'
  info: ApiInfo
  servers: { url: string }[]
  tags: { name: string; description: string }[]
  paths: Record<string, Record<string, Operation>>
  components: {
    schemas: Record<string, JsonSchema>
    responses: Record<string, Response>
    securitySchemes: Record<string, SecurityScheme>
  }
}

const DESCRIPTION =
  'Every failure of the runtime is `{ success: false, error }`. A path answers a method that it does not have with 405 and `allow`. ' +
  'Every answer carries `x-request-id`; a client may choose it.'

/**
 * Describes the HTTP interface of the routes. HEAD is not listed, since every GET route answers it.
 * @param applicationUrl where the application is, if that is not where the document is
 */
export function openApiDocument(routes: readonly RouteInfo[], info: ApiInfo, applicationUrl = '/'): OpenApiDocument {
  const components = new Components()
  const names = new PathNames()
  const ids = new OperationIds()
  const schemes = new SecuritySchemes()
  const paths: OpenApiDocument['paths'] = {}
  const plugins = new Map<string, Set<string>>()
  /** Names of the shared responses that operations refer to. */
  const used = new Set<string>()
  for (const registered of inOrder(routes)) {
    if (registered.method === 'HEAD') continue
    // A fetch handler is one operation: the specification has no method for all of them.
    const isMount = registered.method === 'ALL'
    const route: RouteInfo = isMount ? { ...registered, method: 'GET', streamed_body: null } : registered
    const { text, parameters: inPath } = names.of(route.path)
    const id = ids.of(route)
    const parameters = parametersOf(route, id, inPath, components)
    const requestBody = requestBodyOf(route, id, components)
    const operation: Operation = {
      operationId: id,
      summary: route.summary ?? wordsOf(route.plugin),
      description:
        route.description ?? `Answered by ${listOf([route.plugin])}${isMount ? ', whatever the method' : ''}.`,
      // A route without tags is listed under its domain.
      tags: route.tags.length > 0 ? [...new Set(route.tags)] : [route.plugin.split('.', 1)[0]!],
      ...(parameters.length > 0 ? { parameters } : {}),
      ...(requestBody === undefined ? {} : { requestBody }),
      responses: {
        ...responsesOf(route, id, requestBody !== undefined, components),
        ...(isMount ? { '200': MOUNTED } : {}),
      },
      security: schemes.of(route),
      'x-plugin': route.plugin,
      'x-route': route.path,
    }
    for (const response of Object.values(operation.responses))
      if ('$ref' in response) used.add(response.$ref.split('/').at(-1)!)
    for (const tag of operation.tags) plugins.set(tag, (plugins.get(tag) ?? new Set()).add(route.plugin))
    if (applicationUrl !== '/' && route.path.startsWith('/system/')) operation.servers = [{ url: '/' }]
    paths[text] ??= {}
    paths[text][route.method.toLowerCase()] = operation
  }
  return {
    openapi: '3.1.0',
    info: { description: DESCRIPTION, ...info },
    servers: [{ url: applicationUrl }],
    tags: [...plugins.keys()]
      .sort()
      .map((name) => ({ name, description: `Answered by ${listOf(plugins.get(name)!)}.` })),
    paths,
    components: {
      schemas: { ...FAILURE_SCHEMAS, ...components.schemas },
      responses: sharedResponses(used),
      securitySchemes: schemes.all,
    },
  }
}

/** What is mounted has documents of its own, if it has any. */
const MOUNTED: Response = {
  description: 'The response of the mounted application, which chooses its status and type.',
  content: { '*/*': {} },
}

/** `examples.SayHello` → `Say hello` */
const wordsOf = (plugin: string): string => {
  const [first = '', ...rest] = plugin.slice(plugin.indexOf('.') + 1).split(/(?=[A-Z][a-z])/)
  return [first, ...rest.map((word) => word.toLowerCase())].join(' ')
}

const listOf = (names: Iterable<string>): string =>
  [...names]
    .sort()
    .map((name) => `\`${name}\``)
    .join(', ')
