import { needPackages, OPTIONAL_PACKAGES } from '../../core/modules/optional-package.ts'

/** What is used of `@modelcontextprotocol/sdk`: its types are not needed to compile, and the package may be left out where no assistant comes. */
export interface McpServer {
  registerTool(
    name: string,
    about: { description: string; inputSchema: object; annotations: object },
    call: (input: never) => Promise<ToolAnswer>,
  ): unknown
  connect(transport: McpTransport): Promise<void>
  close(): Promise<void>
}

export interface McpTransport {
  handleRequest(request: Request): Promise<Response>
}

export interface ToolAnswer {
  content: { type: 'text'; text: string }[]
  isError?: boolean
}

interface Sdk {
  McpServer: new (about: { name: string; version: string }, options: { instructions: string }) => McpServer
  WebStandardStreamableHTTPServerTransport: new (options: { enableJsonResponse: boolean }) => McpTransport
}

const MODULES = ['mcp', 'webStandardStreamableHttp'].map((name) => `@modelcontextprotocol/sdk/server/${name}.js`)

let loading: Promise<Sdk> | undefined

/** Loads the package with the first request of an assistant. @throws PACKAGE_MISSING */
export function loadSdk(): Promise<Sdk> {
  loading ??= load().catch((error) => {
    loading = undefined
    throw error
  })
  return loading
}

async function load(): Promise<Sdk> {
  needPackages('The interface for assistants', OPTIONAL_PACKAGES.assistants)
  const modules = await Promise.all(MODULES.map((name) => import(name)))
  return Object.assign({}, ...modules) as Sdk
}
