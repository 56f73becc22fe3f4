// Figures are drawn when the reader comes near them.
const reached = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    reached.unobserve(target);
    draw(target);
  }
}, { rootMargin: "200px" });
all(".plot").forEach((plot) => reached.observe(plot));

const drawAgain = () => all(".plot[data-drawn]").forEach(draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAgain);
