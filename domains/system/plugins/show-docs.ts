import { PagePlugin } from '../page-plugin.ts'

/** The page at `/system/docs`: it shows `/system/openapi.json` and `/system/asyncapi.json`, and sends requests to try them. */
export default class ShowDocs extends PagePlugin {
  static override thread = 'primary' as const

  override async onBoot() {
    await this.files.read('docs')
    const page = { tags: ['system'], etag: true }
    this.http.addEndpoint('/system/docs', 'GET', this.showPage, {
      ...page,
      summary: 'The interface to read and to try',
      description: 'A page with all routes, their schemas and a form for each.',
    })
    this.http.addEndpoint('/system/docs/models', 'GET', this.showPage, {
      ...page,
      summary: 'The schemas of bodies, answers and events',
      description: 'A page with each named schema and where it is used.',
    })
    this.http.addEndpoint('/system/docs/:file', 'GET', this.showFile, {
      ...page,
      summary: 'What that page loads',
      description: 'Scripts, styles and pictures of the page.',
    })
  }
}
