import { type HttpContext, HttpError, Plugin, type Tools, type UploadedFile } from 'heddle'
import { admins } from '../admins.ts'

/** What a file claims to be proves nothing: its first bytes do. */
const SIGNATURES: Record<string, Buffer> = {
  'image/png': Buffer.from('89504e470d0a1a0a', 'hex'),
  'image/jpeg': Buffer.from('ffd8ff', 'hex'),
}

/** `POST /products/:id/image`, for admins, and `GET` of it */
export default class KeepImages extends Plugin {
  #auth
  #db
  #http

  constructor({ auth, db, http }: Tools) {
    super()
    this.#auth = auth
    this.#db = db
    this.#http = http
  }

  override onBoot() {
    const path = '/products/:id/image'
    this.#http.addEndpoint(path, 'POST', this.keep, { authValidator: admins(this.#auth) })
    this.#http.addEndpoint(path, 'GET', this.show)
  }

  async keep({ id, _files = [] }: { id: string; _files?: UploadedFile[] }) {
    const bytes = Buffer.from(_files.find(({ field }) => field === 'image')?.bytes ?? [])
    const type = Object.keys(SIGNATURES).find((each) => bytes.indexOf(SIGNATURES[each]!) === 0)
    if (type === undefined) throw new HttpError(415, 'Neither PNG nor JPEG')
    const product = await this.#db.queryOne('SELECT id FROM products WHERE id = $1', [id])
    if (product === null) throw new HttpError(404, 'There is no such product')
    await this.#db.execute(
      `INSERT INTO images (product_id, type, content_base64) VALUES ($1, $2, $3)
       ON CONFLICT (product_id) DO UPDATE SET type = excluded.type, content_base64 = excluded.content_base64`,
      [id, type, bytes.toString('base64')],
    )
    return { success: true, data: { type, bytes: bytes.byteLength } }
  }

  async show({ id }: { id: string }, context: HttpContext) {
    const image = await this.#db.queryOne<{ type: string; content_base64: string }>(
      'SELECT type, content_base64 FROM images WHERE product_id = $1',
      [id],
    )
    if (image === null) throw new HttpError(404)
    context.sendBinary(Buffer.from(image.content_base64, 'base64'), image.type)
  }
}
