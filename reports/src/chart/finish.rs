//! The last touches on a drawn chart: a size that adapts, a name and a description for those who cannot see it, and the
//! colours of the dark.

use super::canvas::FINENESS;
use super::colour::dark_rules;

/// Turns what the drawing library wrote into the finished document.
pub(super) fn finished(drawn: &str, size: (f64, f64), title: &str, description: &str) -> String {
    let (width, height) = size;
    let body = drawn.split_once(">\n").map_or("", |(_, body)| body);
    let rules = dark_rules("svg.windtunnel");
    format!(
        concat!(
            r#"<svg class="windtunnel" width="{width}" height="{height}" viewBox="0 0 {units_x} {units_y}" "#,
            r#"xmlns="http://www.w3.org/2000/svg" role="img">"#,
            "\n<title>{title}</title>\n<desc>{description}</desc>\n",
            "<style>\nsvg.windtunnel{{max-width:100%;height:auto}}\n",
            "svg.windtunnel polyline{{stroke-linejoin:round;stroke-linecap:butt}}\n",
            "@media (prefers-color-scheme:dark){{\n{rules}}}\n</style>\n{body}"
        ),
        width = width,
        height = height,
        units_x = width * FINENESS,
        units_y = height * FINENESS,
        title = escaped(title),
        description = escaped(description),
        rules = rules,
        body = body,
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
