import type { JsonSchema, RouteInfo } from '../../contracts/route-info.ts'
import { Components } from './components.ts'
import { OperationIds } from './operation-ids.ts'
import { type Parameter, parametersOf } from './parameters.ts'
import { PathNames } from './path-name.ts'
import { type RequestBody, requestBodyOf } from './request-body.ts'
import { FAILURE_SCHEMAS, type Response, responsesOf, sharedResponses } from './responses.ts'
import { type SecurityScheme, SecuritySchemes } from './security-schemes.ts'

export interface ApiInfo {
  title: string
  version: string
  description?: string
}

export interface Operation {
  operationId: string
  summary?: string
  tags: string[]
  parameters?: Parameter[]
  requestBody?: RequestBody
  responses: Record<string, Response | { $ref: string }>
  security?: Record<string, string[]>[]
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
  tags: { name: string }[]
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
  const tags = new Set<string>()
  for (const route of sorted(routes)) {
    if (route.method === 'HEAD') continue
    const { text, parameters } = names.of(route.path)
    const id = ids.of(route)
    const operation = operationOf(route, id, parametersOf(route, id, parameters, components), components)
    const security = schemes.of(route)
    if (security !== undefined) operation.security = security
    for (const tag of operation.tags) tags.add(tag)
    if (applicationUrl !== '/' && route.path.startsWith('/system/')) operation.servers = [{ url: '/' }]
    paths[text] ??= {}
    paths[text][route.method.toLowerCase()] = operation
  }
  return {
    openapi: '3.1.0',
    info: { description: DESCRIPTION, ...info },
    servers: [{ url: applicationUrl }],
    tags: [...tags].sort().map((name) => ({ name })),
    paths,
    components: {
      schemas: { ...FAILURE_SCHEMAS, ...components.schemas },
      responses: sharedResponses(),
      securitySchemes: schemes.all,
    },
  }
}

function operationOf(route: RouteInfo, id: string, parameters: Parameter[], components: Components): Operation {
  const requestBody = requestBodyOf(route, id, components)
  return {
    operationId: id,
    ...(route.summary === null ? {} : { summary: route.summary }),
    // A route without tags is listed under its domain.
    tags: route.tags.length > 0 ? [...new Set(route.tags)] : [route.plugin.split('.', 1)[0]!],
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(requestBody === undefined ? {} : { requestBody }),
    responses: responsesOf(route, id, requestBody !== undefined, components),
    'x-plugin': route.plugin,
    'x-route': route.path,
  }
}

function sorted(routes: readonly RouteInfo[]): RouteInfo[] {
  const key = ({ path, method }: RouteInfo) => `${path} ${method}`
  return routes.toSorted((a, b) => (key(a) < key(b) ? -1 : 1))
}
