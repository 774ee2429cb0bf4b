import type { Data, HttpContext } from '#heddle'
import { PagePlugin } from '../page-plugin.ts'

/** The listener looks for it where it looks for the token. */
const COOKIE = 'heddle_system'
/** A working day. */
const COOKIE_MAX_AGE_SEC = 12 * 3600

/** The page at `/system/login`: browsers cannot send a token with a page or a stream, so it puts the token into a cookie. */
export default class LogIn extends PagePlugin {
  static override thread = 'primary' as const

  override async onBoot() {
    await this.files.read('login')
    const tags = ['system']
    this.http.addEndpoint('/system/login', 'GET', this.showPage, {
      tags,
      etag: true,
      summary: 'Where the token is entered',
      description: 'A page with a form, for browsers.',
    })
    this.http.addEndpoint('/system/login/:file', 'GET', this.showFile, {
      tags,
      etag: true,
      summary: 'What that page loads',
      description: 'Scripts, styles and pictures of the page.',
    })
    this.http.addEndpoint('/system/login', 'POST', this.logIn, {
      tags,
      summary: 'Keeps the token in a cookie',
      description: 'Keeps the bearer token of the request in a cookie. The token was checked before.',
    })
  }

  logIn(_data: Data, context: HttpContext) {
    const { authorization = '', 'x-forwarded-proto': scheme } = context.headers
    const token = /^Bearer +([^\s]+)$/i.exec(authorization)?.[1]
    context.setHeader('cache-control', 'no-store')
    // Anyone is let in where no token is set, and there is none to keep.
    if (token !== undefined && context.operator !== 'anyone') {
      // Browsers keep a cookie that is `Secure` only when it came over TLS.
      const secure = scheme === 'https'
      context.setCookie(COOKIE, token, { path: '/system', sameSite: 'Strict', maxAgeSec: COOKIE_MAX_AGE_SEC, secure })
    }
    return { success: true, data: { operator: context.operator } }
  }
}
