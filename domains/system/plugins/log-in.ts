import { type Data, type HttpContext, plugin } from '#heddle'
import { PageFiles } from '../page-files.ts'

/** The listener looks for it where it looks for the token. */
const COOKIE = 'heddle_system'
/** A working day. */
const COOKIE_MAX_AGE_SEC = 12 * 3600

const page = {
  tags: ['system'],
  etag: true,
  summary: 'Where the token is entered',
  description: 'A page with a form, for browsers.',
}
const login = {
  tags: ['system'],
  summary: 'Keeps the token in a cookie',
  description: 'Keeps the bearer token of the request in a cookie. The token was checked before.',
}

/** The page at `/system/login`: browsers cannot send a token with a page or a stream, so it puts the token into a cookie. */
export default plugin(
  async ({ http }) => {
    const files = await PageFiles.of('login')
    http.get('/system/login', page, files.showPage)
    http.get('/system/login/:file', PageFiles.ROUTE, files.showFile)
    http.post('/system/login', login, logIn)
  },
  { thread: 'primary' },
)

function logIn(_data: Data, context: HttpContext) {
  const { authorization = '' } = context.headers
  const token = /^Bearer +([^\s]+)$/i.exec(authorization)?.[1]
  context.setHeader('cache-control', 'no-store')
  // Anyone is let in where no token is set, and there is none to keep.
  if (token !== undefined && context.operator !== 'anyone') {
    // Browsers keep a cookie that is `Secure` only when it came over TLS.
    const secure = context.scheme === 'https'
    context.setCookie(COOKIE, token, { path: '/system', sameSite: 'Strict', maxAgeSec: COOKIE_MAX_AGE_SEC, secure })
  }
  return { success: true, data: { operator: context.operator } }
}
