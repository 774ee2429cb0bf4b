import sharp from 'sharp'

const background = { r: 200, g: 40, b: 40 }

export default () => async () => {
  const image = sharp({ create: { width: 400, height: 300, channels: 3, background } })
  return (await image.resize(80).png().toBuffer()).length
}
