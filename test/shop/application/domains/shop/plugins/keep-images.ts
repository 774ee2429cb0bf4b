import { type BodyParts, DbError, HttpError, plugin, type ToolsIn } from 'heddle'
import type shop from '../domain.ts'
import { admins } from '../roles.ts'
import { shopTables } from '../tables.ts'

const MAX_BYTES = 2_000_000
/** What a file claims to be proves nothing: its first bytes do. */
const SIGNATURES: Record<string, Buffer> = {
  'image/png': Buffer.from('89504e470d0a1a0a', 'hex'),
  'image/jpeg': Buffer.from('ffd8ff', 'hex'),
}

/** `POST /products/:id/image`, for admins, and `GET` of it */
export default plugin(({ auth, db, http }: ToolsIn<typeof shop>) => {
  const tables = shopTables(db)

  const path = '/products/:id/image'
  http.post(
    path,
    {
      authValidator: auth.validateToken,
      guards: [admins],
      // Read while it comes, and not before the guard has let it in.
      body: 'multipart',
      maxBytes: MAX_BYTES,
      throws: { 404: 'There is no such product', 415: 'Neither PNG nor JPEG' },
      summary: 'Keep the image of a product',
      description: 'The part `image` of a form: PNG or JPEG.',
    },
    async ({ id }, { body }) => {
      const { type, content } = await readImage(body)
      try {
        await tables
          .insertInto('images')
          .values({ product_id: id, type, content })
          .onConflict((conflict) => conflict.column('product_id').doUpdateSet({ type, content }))
          .execute()
      } catch (error) {
        if (error instanceof DbError && error.kind === 'foreign_key_violation') {
          throw new HttpError(404, 'There is no such product')
        }
        throw error
      }
      return { success: true, data: { type, bytes: content.byteLength } }
    },
  )
  const shown = { summary: 'The image of a product', description: 'As it was sent.' }
  http.get(path, { ...shown, etag: true, throws: { 404: 'There is no image' } }, async ({ id }, context) => {
    const image = await tables
      .selectFrom('images')
      .select(['type', 'content'])
      .where('product_id', '=', id)
      .executeTakeFirst()
    if (image === undefined) throw new HttpError(404, 'There is no image')
    context.sendBinary(image.content, image.type)
  })
})

/** The first part that is named `image`. @throws HttpError 415 */
async function readImage(body: BodyParts) {
  for await (const part of body) {
    if (part.field !== 'image') continue
    const content = await part.bytes(MAX_BYTES)
    const type = Object.keys(SIGNATURES).find((each) => content.indexOf(SIGNATURES[each]!) === 0)
    if (type !== undefined) return { type, content }
  }
  throw new HttpError(415, 'Neither PNG nor JPEG')
}
